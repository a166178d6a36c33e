// Types and constants of the tunnel between a gateway and a node, for both ends.

import type { BodySource } from "../../base/bytes/body-source.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { longLived } from "../../base/long-lived.ts";
import type { ChatContinuation, EngineModel, EngineRequest, EngineResponse } from "../../domain/models/engine.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { NodeToolRequest, OfferedMcpServer } from "../../domain/tools/node-tools.ts";

/** Path of the gateway's endpoint for nodes. */
export const nodeConnectPath = "/v1/node/connect";

/** WebSocket subprotocol; its number is the protocol's major version. */
export const tunnelProtocol = "headrace.node.v1";

/** WebSocket close codes of a tunnel (RFC 6455, 7.4). Codes from 4000 on are defined here. */
export const tunnelCloseCodes = {
  /** The tunnel was closed normally. */
  normal: 1000,
  goingAway: 1001,
  /** The connection broke or was silent for too long. */
  broken: 1006,
  /** A message was invalid. */
  protocol: 4400,
  /** The node's signature was wrong. */
  unauthenticated: 4401,
  /** The node was removed or its key revoked. */
  revoked: 4403,
  unknownNode: 4404,
  /** The node did not prove its identity in time. */
  authenticationTimeout: 4408,
  /** The same node has connected again. */
  replaced: 4409,
  /** The two ends have no protocol version in common. */
  version: 4426,
  /** The gateway accepts no more connections at the moment. */
  busy: 4429,
  /** An internal failure at the end that closed the tunnel, such as the database. */
  internal: 4500,
} as const;

/** Maximum parallel requests by operation. Operations without a known number are missing. */
export type AnnouncedConcurrency = Partial<Record<Operation, number>>;

/** A model that a node announces. The node cannot set `environments`. */
export interface AnnouncedModel extends Omit<EngineModel, "environments"> {
  concurrency?: AnnouncedConcurrency;
  /** State of the model's process, if the node starts it on demand. */
  process?: ModelProcessState;
  /** Describes how the model continues a broken answer; absent if it cannot. */
  continues?: ChatContinuation;
}

export interface NodeAnnouncement {
  /** Version of Headrace on the node, such as `0.6.0`. */
  version: string;
  models: readonly AnnouncedModel[];
  /** MCP servers that the node offers; absent if there are none. */
  toolServers?: readonly OfferedMcpServer[];
  /** Number of running and waiting requests at the node, from all senders. */
  load?: { active: number; waiting: number };
}

/** The node's name and approved models, which the gateway sends to the node. */
export interface NodeStatus {
  name: string;
  /** Ids of the approved models, or only `*`. */
  approvedModels: readonly string[];
}

/** A request to a node, for a model or for an MCP server. */
export type TunnelRequest = EngineRequest | NodeToolRequest;

/** Feature name of nodes that can offer MCP servers. */
export const toolsFeature = "tools";

/** The gateway's end of a tunnel to a verified node. */
export interface GatewayEnd {
  readonly nodeId: string;
  /** Id of this connection. */
  readonly connectionId: string;
  /** IP address of the node. Trusted proxies are taken into account. */
  readonly clientAddress: string;
  /** The node's last announcement; undefined until it has sent one. */
  readonly announcement: NodeAnnouncement | undefined;
  /** Number of running requests. */
  readonly openStreams: number;
  /** True if no new requests are accepted, because the gateway or the node is stopping. */
  readonly draining: boolean;
  readonly closed: boolean;
  /** Milliseconds until the last heartbeat was answered; undefined before the first one. */
  readonly roundTripMs: number | undefined;
  /** Sends the node its name and approved models. */
  sendStatus(status: NodeStatus): void;
  /** Sends a request to the node. */
  send(request: TunnelRequest, cancellation: Cancellation): Promise<EngineResponse>;
  /** Accepts no new requests. Resolves when open requests have ended and the connection is closed. */
  drain(): Promise<void>;
  /** Closes the tunnel. Open requests fail with `upstream_error`. */
  close(code: number, reason: string): void;
}

export interface GatewayEndListener {
  /** Called when `announcement` has changed, at most once a second. */
  announced(announcement: NodeAnnouncement): void;
  /** Called when the node has announced that it stops. Open requests continue. */
  draining(): void;
  /** Called once, after all open requests have failed. */
  closed(code: number, reason: string): void;
}

/** A request as the node gets it. It has no memory account, because the node does not know the caller. */
export type NodeRequest = Omit<EngineRequest, "memoryAccount">;
export type NodeToolsRequest = Omit<NodeToolRequest, "memoryAccount">;

/** Answers a request at the node. */
export type NodeHandler = (request: NodeRequest | NodeToolsRequest, cancellation: Cancellation) => Promise<NodeAnswer>;

export interface NodeAnswer {
  status: number;
  headers: { get(name: string): string | null };
  body: BodySource;
}

/** Limits of a tunnel. Tests use shorter times. */
export interface TunnelLimits {
  /** Milliseconds between two heartbeats. */
  heartbeatMs: number;
  /** Milliseconds without any byte after which the other end counts as gone. */
  silenceMs: number;
  /** Milliseconds in which the node must prove its identity. */
  authenticationMs: number;
  /** Maximum open requests of one tunnel. */
  streams: number;
  /** Maximum bytes of one body that may be sent before the receiver grants more. */
  windowBytes: number;
  /** Maximum bytes of a request's body. */
  bodyBytes: number;
  /** Maximum bytes of all request bodies together that a node stores. */
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
