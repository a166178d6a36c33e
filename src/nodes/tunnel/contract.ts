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

/** The reasons for which a tunnel ends: WebSocket close codes (RFC 6455, 7.4), our own from 4000 on. */
export const tunnelCloseCodes = {
  /** The end that sends this code has ended the tunnel normally. */
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
  /** The gateway has no room for another connection for now. */
  busy: 4429,
  /** A part of the other end failed, for example the store of nodes. */
  internal: 4500,
} as const;

/**
 * The most parallel generations or embedding requests, by operation. An operation is left out if its number is unknown.
 */
export type AnnouncedConcurrency = Partial<Record<Operation, number>>;

/** A model as a node announces it. `environments` of EngineModel is never set, since the node does not decide it. */
export interface AnnouncedModel extends Omit<EngineModel, "environments"> {
  concurrency?: AnnouncedConcurrency;
  /** The state of the model's process, if the node starts it on demand. */
  process?: ModelProcessState;
  /** The way in which the model continues the beginning of an answer. Left out if it is not known to do so. */
  continues?: ChatContinuation;
}

export interface NodeAnnouncement {
  /** The version of the node's Headrace, such as `0.6.0`. */
  version: string;
  models: readonly AnnouncedModel[];
  /** The MCP servers that the node offers. Left out if it offers none. */
  toolServers?: readonly OfferedMcpServer[];
  /** Running and waiting requests at the node, from any sender. */
  load?: { active: number; waiting: number };
}

/** The name and the approved models of a node, as the gateway tells the node for people there. */
export interface NodeStatus {
  name: string;
  /** Ids of models, or only `*`. */
  approvedModels: readonly string[];
}

/** A request for a model, or for an MCP server. */
export type TunnelRequest = EngineRequest | NodeToolRequest;

/** Name of the feature of nodes that have MCP servers. */
export const toolsFeature = "tools";

/** The gateway's end of a tunnel to a verified node. */
export interface GatewayEnd {
  readonly nodeId: string;
  /** The id of this connection. */
  readonly connectionId: string;
  /** Address of the node, with the server's trusted proxies taken into account. */
  readonly clientAddress: string;
  /** The last announcement of the node. Undefined until the first one. */
  readonly announcement: NodeAnnouncement | undefined;
  /** The number of running requests. */
  readonly openStreams: number;
  /** True if no new requests are accepted, because either end is shutting down. */
  readonly draining: boolean;
  readonly closed: boolean;
  /** The time that the last answer to a heartbeat took, in milliseconds. Undefined before the first. */
  readonly roundTripMs: number | undefined;
  /** Tells the node its name and its approved models. */
  sendStatus(status: NodeStatus): void;
  /** Sends a request like `Engine.send`. */
  send(request: TunnelRequest, cancellation: Cancellation): Promise<EngineResponse>;
  /** Accepts no new requests. Resolves once open requests have ended and the connection is closed. */
  drain(): Promise<void>;
  /** Ends the tunnel, and its open requests with `upstream_error`. */
  close(code: number, reason: string): void;
}

export interface GatewayEndListener {
  /** Called after the end's `announcement` was replaced, at most once a second. */
  announced(announcement: NodeAnnouncement): void;
  /** Called when the node accepts no new requests. Open requests continue. */
  draining(): void;
  /** Called once, after all open streams have failed. */
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
  /** The interval between two heartbeats, in milliseconds. */
  heartbeatMs: number;
  /** The milliseconds without a byte after which the other end counts as gone. */
  silenceMs: number;
  /** The milliseconds within which the other end must have proven its identity. */
  authenticationMs: number;
  /** The most streams open at once on one tunnel. */
  streams: number;
  /** The most bytes of one stream that may be on their way without a further grant. */
  windowBytes: number;
  /** The most bytes of one request's body. */
  bodyBytes: number;
  /** The most bytes of all bodies together that a node holds for running requests. */
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
