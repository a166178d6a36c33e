// Nodes: machines that open a connection to the gateway and serve their models over it.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { OfferedMcpServer } from "../tools/node-tools.ts";
import type { ChatContinuation, EngineModel } from "./engine.ts";
import type { ModelProcessState } from "./model-process-state.ts";
import type { Operation } from "./operation.ts";

/** The rule for names of nodes. It is the rule for upstreams too, because both names appear in records and logs. */
export const nodeNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** An operator who approves this approves every model that the node announces, now and later. */
export const everyModel = "*";

/** Maximum number of nodes. Each takes a connection, and each of its models a catalog entry. */
export const maxNodes = 1_000;
export const maxNodeModels = 200;

/** Seconds for which a join token is valid. */
export const joinTokenSeconds = { least: 60, usual: 3600, most: 604_800 } as const;

/** A model as a node announces it. The environments are missing, because the gateway decides them. */
export interface AnnouncedModel extends Omit<EngineModel, "environments"> {
  /** Maximum concurrent requests for each operation. A missing operation is unknown. */
  concurrency?: Partial<Record<Operation, number>>;
  /** The state of the model's process. Missing if the node does not start the model on demand. */
  process?: ModelProcessState;
  /** Describes how the model can continue an unfinished answer. Missing if it is not known to continue answers. */
  continues?: ChatContinuation;
}

const nodeId = /^node_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Finds a node by id, or else by name. A node that is named like another node's id is not confused with it. */
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
  /** The public key (Ed25519, 32 bytes as base64url) that verifies the node at each connection. */
  publicKey: string;
  /** Ids of approved models, or `everyModel` alone. Empty if no model is approved. */
  approvedModels: readonly string[];
  /** Environments whose keys may use the approved models. */
  environments: readonly Environment[];
  /** Maximum concurrent requests. If null, the gateway measures the number. */
  maxConcurrency: number | null;
  /** True if requests of keys with `never_leaves` may use the node. */
  local: boolean;
  /** The models that the node last announced. */
  announced: readonly AnnouncedModel[];
  /** The MCP servers that the node last announced. */
  toolServers: readonly OfferedMcpServer[];
  /** The node's Headrace version; null before the first connection. */
  version: string | null;
  /** Unix seconds. */
  createdAt: number;
  lastSeenAt: number | null;
}

/** A token with which one machine can join once. */
export interface NodeJoinToken {
  /** `njt_` and a UUIDv7. */
  id: string;
  digest: string;
  last4: string;
  /** Models that are approved when the node joins. If empty, an operator approves them later. */
  approvedModels: readonly string[];
  environments: readonly Environment[];
  createdBy: string | null;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  usedAt: number | null;
  /** Id of the node that joined with the token. */
  nodeId: string | null;
}

/** The current connection of a node, and the process that has it. */
export interface NodeConnection {
  nodeId: string;
  replicaId: string;
  /** Id of this connection. A reconnect gets another id. */
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
  /** Lists nodes in the order of their names. */
  listNodes(): Promise<NodeRecord[]>;
  /** Returns the connections of live processes. Whether a process is live depends on the database's clock. */
  listConnections(): Promise<NodeConnection[]>;
  findNode(id: string): Promise<NodeRecord | undefined>;
  /**
   * Uses the token and adds the node with its approvals, in one transaction. `used`, `expired` and `unknown` are faults
   * of the token. `name_taken`: a node or upstream has the name, or `isFree` is false. `too_many`: there are too many
   * nodes.
   */
  enrol(
    node: NodeRecord,
    token: { digests: readonly string[]; at: number; isFree: boolean },
    event: (token: NodeJoinToken) => AuditEvent,
  ): Promise<"enrolled" | "unknown" | "expired" | "used" | "name_taken" | "too_many">;
  /** Changes a node. Returns false if it does not exist any more or the new name is taken. */
  changeNode(id: string, change: NodeChange, event: AuditEvent): Promise<boolean>;
  /** Deletes the node and its connection, so that it cannot connect again. */
  deleteNode(id: string, event: AuditEvent): Promise<boolean>;
  insertToken(token: NodeJoinToken, event: AuditEvent): Promise<void>;
  /** Lists join tokens, newest first. Used and expired tokens stay in the list for a week. */
  listTokens(): Promise<NodeJoinToken[]>;
  deleteToken(id: string, event: AuditEvent): Promise<boolean>;
  /** Stores the node's connection and replaces an earlier one. Returns false if the node does not exist. */
  connected(connection: Omit<NodeConnection, "advertiseUrl">, seen: NodeSeen): Promise<boolean>;
  /** Removes a node's connection if it still has this id. `at` is in Unix seconds. */
  disconnected(nodeId: string, connectionId: string, at: number): Promise<void>;
  /** Stores what a connected node reports about itself. */
  seen(nodeId: string, seen: NodeSeen): Promise<void>;
  /** Marks nodes as still connected at `at` (Unix seconds). Does not notify other processes. */
  touch(nodeIds: readonly string[], at: number): Promise<void>;
}

export interface NodeSeen {
  announced: readonly AnnouncedModel[];
  toolServers: readonly OfferedMcpServer[];
  version: string;
  /** Unix seconds. */
  at: number;
}
