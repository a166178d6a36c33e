// Nodes: machines that serve their models over a connection that they opened, as stored and managed.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { OfferedMcpServer } from "../tools/node-tools.ts";
import type { ChatContinuation, EngineModel } from "./engine.ts";
import type { ModelProcessState } from "./model-process-state.ts";
import type { Operation } from "./operation.ts";

/** The same rule as for upstreams, because both appear in records and logs. */
export const nodeNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** Approves every model that a node announces, now and later. */
export const everyModel = "*";

/** Each node costs a connection, and each of its models a catalog entry. */
export const maxNodes = 1_000;
export const maxNodeModels = 200;

/** A model as a node announces it. The gateway, not the node, decides the model's environments. */
export interface AnnouncedModel extends Omit<EngineModel, "environments"> {
  /** Maximum concurrent requests by operation. Missing: unknown. */
  concurrency?: Partial<Record<Operation, number>>;
  /** The state of the model's process, if the node starts it on demand. */
  process?: ModelProcessState;
  /** The way in which the model continues an answer that was begun. Missing: not known to continue answers. */
  continues?: ChatContinuation;
}

const nodeId = /^node_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Finds a node by id, or else by name. A node whose name equals another's id is not mistaken for it. */
export function nodeCalled<Node extends Pick<NodeRecord, "id" | "name">>(
  nodes: readonly Node[],
  asked: string,
): Node | undefined {
  const member = nodeId.test(asked) ? "id" : "name";
  return nodes.find((node) => node[member] === asked);
}

export interface NodeRecord {
  /** `node_` and a UUIDv7. */
  id: string;
  name: string;
  /** Ed25519, 32 bytes as base64url: verifies the node at each connection. */
  publicKey: string;
  /** Ids of approved models, or only `everyModel`; empty: none yet. */
  approvedModels: readonly string[];
  /** Environments whose keys may use the approved models. */
  environments: readonly Environment[];
  /** Maximum concurrent requests; null: measured. */
  maxConcurrency: number | null;
  /** True if requests of keys with `never_leaves` may go there. */
  local: boolean;
  /** The models that the node announced last. */
  announced: readonly AnnouncedModel[];
  /** The MCP servers that the node announced last. */
  toolServers: readonly OfferedMcpServer[];
  /** The node's Headrace version; null before the first connection. */
  version: string | null;
  /** Unix seconds. */
  createdAt: number;
  lastSeenAt: number | null;
}

/** A token with which one machine joins once. */
export interface NodeJoinToken {
  /** `njt_` and a UUIDv7. */
  id: string;
  digest: string;
  last4: string;
  /** Models that are approved for the node as soon as it joins; empty: an operator approves them later. */
  approvedModels: readonly string[];
  environments: readonly Environment[];
  createdBy: string | null;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  usedAt: number | null;
  /** Id of the node that used the token. */
  nodeId: string | null;
}

/** The connection of a node, and the process that holds it. */
export interface NodeConnection {
  nodeId: string;
  replicaId: string;
  /** Identifies this connection; a reconnect gets another id. */
  connectionId: string;
  clientAddress: string;
  /** Unix seconds. */
  connectedAt: number;
  /** The URL at which other replicas reach the process; null if the process has none. */
  advertiseUrl: string | null;
}

export interface NodeChange {
  name?: string;
  approvedModels?: readonly string[];
  environments?: readonly Environment[];
  maxConcurrency?: number | null;
  local?: boolean;
  draining?: boolean;
}

export interface NodeStore {
  /** Lists nodes, ordered by name. */
  listNodes(): Promise<NodeRecord[]>;
  /** Returns connections held by live processes, by the database's clock. */
  listConnections(): Promise<NodeConnection[]>;
  findNode(id: string): Promise<NodeRecord | undefined>;
  /**
   * Uses the token and adds the node with its approvals, or neither. Refuses with `used`, `expired` or `unknown` for
   * the token, then `name_taken` (by a node or an upstream, or if `isFree` says so) and `too_many`.
   */
  enrol(
    node: NodeRecord,
    token: { digests: readonly string[]; at: number; isFree: boolean },
    event: (token: NodeJoinToken) => AuditEvent,
  ): Promise<"enrolled" | "unknown" | "expired" | "used" | "name_taken" | "too_many">;
  /** Returns false without a change if the node does not exist any more, or the new name is taken. */
  changeNode(id: string, change: NodeChange, event: AuditEvent): Promise<boolean>;
  /** Deletes the node and its connection, so that it cannot connect again. */
  deleteNode(id: string, event: AuditEvent): Promise<boolean>;
  insertToken(token: NodeJoinToken, event: AuditEvent): Promise<void>;
  /** Lists tokens, newest first. Used and expired tokens stay in the list for a week. */
  listTokens(): Promise<NodeJoinToken[]>;
  deleteToken(id: string, event: AuditEvent): Promise<boolean>;
  /** Stores the connection in place of an earlier one. Returns false without a change if there is no such node. */
  connected(connection: Omit<NodeConnection, "advertiseUrl">, seen: NodeSeen): Promise<boolean>;
  /** Removes a node's connection if it still has this connection id. `at`: Unix seconds. */
  disconnected(nodeId: string, connectionId: string, at: number): Promise<void>;
  /** Stores the facts that a connected node reports. */
  seen(nodeId: string, seen: NodeSeen): Promise<void>;
  /** Marks nodes as still connected at `at` (Unix seconds), without announcing a change. */
  touch(nodeIds: readonly string[], at: number): Promise<void>;
}

export interface NodeSeen {
  announced: readonly AnnouncedModel[];
  toolServers: readonly OfferedMcpServer[];
  version: string;
  /** Unix seconds. */
  at: number;
}
