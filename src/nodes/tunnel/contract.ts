// The contract of a tunnel between a gateway and a node, for the code that uses it at either end.

import type { BodySource } from "../../base/bytes/body-source.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { longLived } from "../../base/long-lived.ts";
import type { ChatContinuation, EngineModel, EngineRequest, EngineResponse } from "../../domain/models/engine.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { NodeToolRequest, OfferedMcpServer } from "../../domain/tools/node-tools.ts";

/** The gateway's path that a node connects to. */
export const nodeConnectPath = "/v1/node/connect";

/** WebSocket subprotocol. Its number is the major version of the protocol. */
export const tunnelProtocol = "headrace.node.v1";

/** Why a tunnel ended: WebSocket close codes (RFC 6455, 7.4), our own from 4000 on. */
export const tunnelCloseCodes = {
  /** Ended normally by the end that sends it. */
  normal: 1000,
  goingAway: 1001,
  /** The connection broke off, or became silent. */
  broken: 1006,
  /** A message is invalid, or violates the protocol. */
  protocol: 4400,
  /** The signature is wrong. */
  unauthenticated: 4401,
  /** The node may no longer connect: it was removed or its key withdrawn. */
  revoked: 4403,
  unknownNode: 4404,
  /** The node did not identify itself in time. */
  authenticationTimeout: 4408,
  /** The same node has connected again. */
  replaced: 4409,
  /** The two ends have no common protocol version. */
  version: 4426,
  /** There is no room for now. */
  busy: 4429,
  /** A part of the other end failed, for example the store of nodes. */
  internal: 4500,
} as const;

/** The most parallel generations or embedding requests, by operation. Left out if unknown. */
export type AnnouncedConcurrency = Partial<Record<Operation, number>>;

/** A model as a node announces it. `environments` of EngineModel is never set, since the node does not decide it. */
export interface AnnouncedModel extends Omit<EngineModel, "environments"> {
  concurrency?: AnnouncedConcurrency;
  /** The state of its process, if the node starts it on demand. */
  process?: ModelProcessState;
  /** How it continues the beginning of an answer. Left out if it is not known to do so. */
  continues?: ChatContinuation;
}

export interface NodeAnnouncement {
  /** Version of its Headrace, such as `0.6.0`. */
  version: string;
  models: readonly AnnouncedModel[];
  /** The MCP servers that it offers. Left out if none. */
  toolServers?: readonly OfferedMcpServer[];
  /** Running and waiting requests at the node, from any sender. */
  load?: { active: number; waiting: number };
}

/** The status of a node at its gateway, for people at the node. */
export interface NodeStatus {
  name: string;
  /** Ids of models, or only `*`. */
  approvedModels: readonly string[];
}

/** For a model, or for an MCP server. */
export type TunnelRequest = EngineRequest | NodeToolRequest;

/** Name of the feature of nodes that have MCP servers. */
export const toolsFeature = "tools";

/** The gateway's end of a tunnel to a verified node. */
export interface GatewayEnd {
  readonly nodeId: string;
  /** Id of this one connection. */
  readonly connectionId: string;
  /** Address of the node, with the server's trusted proxies taken into account. */
  readonly clientAddress: string;
  /** Undefined until the node's first announcement. */
  readonly announcement: NodeAnnouncement | undefined;
  /** The running requests. */
  readonly openStreams: number;
  /** Whether nothing new is accepted: either end is shutting down. */
  readonly draining: boolean;
  readonly closed: boolean;
  /** Milliseconds that the last answer to a heartbeat took. Undefined before the first. */
  readonly roundTripMs: number | undefined;
  /** Sends the node its status. */
  sendStatus(status: NodeStatus): void;
  /** Sends a request like `Engine.send`. */
  send(request: TunnelRequest, cancellation: Cancellation): Promise<EngineResponse>;
  /** Accepts nothing new. Resolves once open requests have ended and the connection is closed. */
  drain(): Promise<void>;
  /** Ends it, and its open requests with `upstream_error`. */
  close(code: number, reason: string): void;
}

export interface GatewayEndListener {
  /** Called after its `announcement` was replaced. At most once a second. */
  announced(announcement: NodeAnnouncement): void;
  /** The node accepts nothing new. Open requests continue. */
  draining(): void;
  /** Once. All open streams have failed by then. */
  closed(code: number, reason: string): void;
}

/** A request as it reaches a node. The gateway cannot say on which account the node's bytes are held. */
export type NodeRequest = Omit<EngineRequest, "memoryAccount">;
export type NodeToolsRequest = Omit<NodeToolRequest, "memoryAccount">;

/** The handler that answers a request at the node, shaped like `Engine.send`. */
export type NodeHandler = (request: NodeRequest | NodeToolsRequest, cancellation: Cancellation) => Promise<NodeAnswer>;

export interface NodeAnswer {
  status: number;
  headers: { get(name: string): string | null };
  body: BodySource;
}

/** Limits of time and size. Those of tests are shorter. */
export interface TunnelLimits {
  /** Milliseconds between two heartbeats. */
  heartbeatMs: number;
  /** After this many milliseconds without a byte, the other end counts as gone. */
  silenceMs: number;
  /** The other end must have identified itself within this many milliseconds. */
  authenticationMs: number;
  /** Open at once on one tunnel. */
  streams: number;
  /** Bytes of one stream that may be on their way without a further grant. */
  windowBytes: number;
  /** Bytes of one request's body. */
  bodyBytes: number;
  /** Bytes of all bodies together that a node holds for running requests. */
  allBodyBytes: number;
}

export const defaultTunnelLimits: TunnelLimits = {
  heartbeatMs: 2_500,
  silenceMs: longLived.nodeTunnel.idleMs,
  authenticationMs: 5_000,
  streams: 2_048,
  windowBytes: 256 * 1024,
  bodyBytes: 64 * 1024 * 1024,
  allBodyBytes: 256 * 1024 * 1024,
};
