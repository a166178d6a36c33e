// The contract of a tunnel between a gateway and a node, for those who use it at either end.

import type { BodySource } from "../../base/bytes/body-source.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { longLived } from "../../base/long-lived.ts";
import type { ChatContinuation, EngineModel, EngineRequest, EngineResponse } from "../../domain/models/engine.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { NodeToolRequest, OfferedMcpServer } from "../../domain/tools/node-tools.ts";

/** The path of the gateway that a node connects to. */
export const nodeConnectPath = "/v1/node/connect";

/** WebSocket subprotocol: its number is the major version of the protocol. */
export const tunnelProtocol = "headrace.node.v1";

/** Why a tunnel ended: WebSocket close codes (RFC 6455, 7.4), those of our own from 4000 on. */
export const tunnelCloseCodes = {
  /** Ended in order, by whom it is told. */
  normal: 1000,
  goingAway: 1001,
  /** The connection broke off, or fell silent. */
  broken: 1006,
  /** The message cannot be understood, or breaks the rules. */
  protocol: 4400,
  /** The signature is wrong. */
  unauthenticated: 4401,
  /** The node may not connect any more: it was removed or its key withdrawn. */
  revoked: 4403,
  unknownNode: 4404,
  /** It did not say in time who it is. */
  authenticationTimeout: 4408,
  /** The same node has connected again. */
  replaced: 4409,
  /** No version of the protocol is common to both. */
  version: 4426,
  /** No more can be taken for now. */
  busy: 4429,
  /** The other end's own parts failed: the store of nodes, for instance. */
  internal: 4500,
} as const;

/** Most generations, or embedding requests, at once for each operation; one left out: unknown. */
export type AnnouncedConcurrency = Partial<Record<Operation, number>>;

/** A model as a node announces it; `environments` of EngineModel is no matter of the node's and never set. */
export interface AnnouncedModel extends Omit<EngineModel, "environments"> {
  concurrency?: AnnouncedConcurrency;
  /** The state of the process that serves it, where the node starts that for requests. */
  process?: ModelProcessState;
  /** How it goes on with an answer that was begun; left out: nobody knows that it can. */
  continues?: ChatContinuation;
}

export interface NodeAnnouncement {
  /** Version of its Headrace, such as `0.6.0`. */
  version: string;
  models: readonly AnnouncedModel[];
  /** MCP servers that it offers; left out: none. */
  toolServers?: readonly OfferedMcpServer[];
  /** Requests at work and waiting at the node, whoever sent them. */
  load?: { active: number; waiting: number };
}

/** The standing of a node with its gateway, for those who sit at the node. */
export interface NodeStatus {
  name: string;
  /** Ids of models, or `*` alone. */
  approvedModels: readonly string[];
}

/** For a model, or for an MCP server. */
export type TunnelRequest = EngineRequest | NodeToolRequest;

/** Name of the feature of nodes that have MCP servers. */
export const toolsFeature = "tools";

/** The end of a tunnel at the gateway; its node has proven who it is. */
export interface GatewayEnd {
  readonly nodeId: string;
  /** Id of this one connection. */
  readonly connectionId: string;
  /** Address of the node, as the server's trusted proxies tell it. */
  readonly clientAddress: string;
  /** Undefined until the node has announced for the first time. */
  readonly announcement: NodeAnnouncement | undefined;
  /** Requests that are under way. */
  readonly openStreams: number;
  /** Whether nothing new is taken: either end is going away. */
  readonly draining: boolean;
  readonly closed: boolean;
  /** Milliseconds that the last answer to a heartbeat took; undefined before the first. */
  readonly roundTripMs: number | undefined;
  /** Tells the node how it stands. */
  tell(standing: NodeStatus): void;
  /** Sends a request like `Engine.send`. */
  send(request: TunnelRequest, cancellation: Cancellation): Promise<EngineResponse>;
  /** Takes nothing new; resolves once what is open has ended and the connection is closed. */
  drain(): Promise<void>;
  /** Ends it, and what is open on it with `upstream_error`. */
  close(code: number, reason: string): void;
}

export interface GatewayEndListener {
  /** Called after its own `announcement` was replaced. At most once a second. */
  announced(announcement: NodeAnnouncement): void;
  /** The node takes nothing new; what is open goes on. */
  draining(): void;
  /** Once. All open streams have failed by then. */
  closed(code: number, reason: string): void;
}

/** A request as it comes to a node: on whose account bytes are held there is not for the gateway to say. */
export type NodeRequest = Omit<EngineRequest, "memoryAccount">;
export type NodeToolsRequest = Omit<NodeToolRequest, "memoryAccount">;

/** The handler that answers a request at the node: the shape of `Engine.send`. */
export type NodeHandler = (request: NodeRequest | NodeToolsRequest, cancellation: Cancellation) => Promise<NodeAnswer>;

export interface NodeAnswer {
  status: number;
  headers: { get(name: string): string | null };
  body: BodySource;
}

/** Limits of time and size; those of tests are shorter. */
export interface TunnelLimits {
  /** Milliseconds between two heartbeats. */
  heartbeatMs: number;
  /** Milliseconds without a byte from the other end after which it counts as gone. */
  silenceMs: number;
  /** Milliseconds until the other end must have proven who it is. */
  authenticationMs: number;
  /** Open at once on one tunnel. */
  streams: number;
  /** Bytes of one stream that may be under way without a grant of more. */
  windowBytes: number;
  /** Bytes of one request's body. */
  bodyBytes: number;
  /** Bytes of all bodies together that a node holds for requests at work. */
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
