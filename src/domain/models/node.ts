// Nodes: machines that serve their models to this gateway over a connection that they opened, as they are stored and managed.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { OfferedMcpServer } from "../tools/node-tools.ts";
import type { ChatContinuation, EngineModel } from "./engine.ts";
import type { ModelProcessState } from "./model-process-state.ts";
import type { Operation } from "./operation.ts";

/** Likewise of an upstream: both stand beside each other in records and logs. */
export const nodeNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** Stands for every model that it announces, now and later. */
export const everyModel = "*";

/** Each node costs a connection, and each model of it a place in the catalog. */
export const maxNodes = 1_000;
export const maxNodeModels = 200;

/** A model as a node announces it. Whose keys may use it is no matter of the node's. */
export interface AnnouncedModel extends Omit<EngineModel, "environments"> {
  /** Most requests at once, by operation; left out: unknown. */
  concurrency?: Partial<Record<Operation, number>>;
  /** The state of the process that serves it, where the node starts that for requests. */
  process?: ModelProcessState;
  /** How it goes on with an answer that was begun; left out: nobody knows that it can. */
  continues?: ChatContinuation;
}

const nodeId = /^node_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The node of this id, or else of this name; a machine that calls itself by the id of another one is not taken for it. */
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
  /** Ed25519, 32 bytes as base64url: how it proves who it is at each connection. */
  publicKey: string;
  /** Ids of models that operators approved, or `everyModel` alone; empty: nothing yet. */
  approvedModels: readonly string[];
  /** Environments whose keys may use them. */
  environments: readonly Environment[];
  /** Most requests at once; null: measured. */
  maxConcurrency: number | null;
  /** Whether requests of keys that `never_leaves` holds for may go there. */
  local: boolean;
  /** The models that it last said it serves. */
  announced: readonly AnnouncedModel[];
  /** MCP servers that it last said it offers. */
  toolServers: readonly OfferedMcpServer[];
  /** Version of its Headrace; null before it was connected. */
  version: string | null;
  /** Unix seconds. */
  createdAt: number;
  lastSeenAt: number | null;
}

/** Lets one machine join, once. */
export interface NodeJoinToken {
  /** `njt_` and a UUIDv7. */
  id: string;
  digest: string;
  last4: string;
  /** Approved at once for the node that joins with it; empty: an operator looks first. */
  approvedModels: readonly string[];
  environments: readonly Environment[];
  createdBy: string | null;
  /** Unix seconds. */
  createdAt: number;
  expiresAt: number;
  usedAt: number | null;
  /** Id of the node that joined with it. */
  nodeId: string | null;
}

/** The connection of a node, and which process holds it. */
export interface NodeConnection {
  nodeId: string;
  replicaId: string;
  /** Names this one connection: a node that reconnects has another. */
  connectionId: string;
  clientAddress: string;
  /** Unix seconds. */
  connectedAt: number;
  /** The address at which other replicas reach that process; null where it does not say. */
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
  /** Nodes by name. */
  listNodes(): Promise<NodeRecord[]>;
  /** Connections that processes which are still there hold, by the database's clock. */
  listConnections(): Promise<NodeConnection[]>;
  findNode(id: string): Promise<NodeRecord | undefined>;
  /**
   * Takes the token and adds the node with what the token approved, or neither: `used`, `expired` or `unknown` where the
   * token lets nobody in, then `name_taken` (by a node or an upstream, or as `isFree` says) and `too_many`.
   */
  enrol(
    node: NodeRecord,
    token: { digests: readonly string[]; at: number; isFree: boolean },
    event: (token: NodeJoinToken) => AuditEvent,
  ): Promise<"enrolled" | "unknown" | "expired" | "used" | "name_taken" | "too_many">;
  /** False where it is not there any more, or the new name is taken: then nothing is written. */
  changeNode(id: string, change: NodeChange, event: AuditEvent): Promise<boolean>;
  /** Deletes it with its connection: it is let in no more. */
  deleteNode(id: string, event: AuditEvent): Promise<boolean>;
  insertToken(token: NodeJoinToken, event: AuditEvent): Promise<void>;
  /** Newest first, those that let nobody in any more included, for a week. */
  listTokens(): Promise<NodeJoinToken[]>;
  deleteToken(id: string, event: AuditEvent): Promise<boolean>;
  /** Stores the connection in place of an earlier one. False where there is no such node: nothing is written. */
  connected(connection: Omit<NodeConnection, "advertiseUrl">, seen: NodeSeen): Promise<boolean>;
  /** Removes the connection only while it is still this one. `at`: Unix seconds. */
  disconnected(nodeId: string, connectionId: string, at: number): Promise<void>;
  /** Stores the facts that a connected node tells of itself. */
  seen(nodeId: string, seen: NodeSeen): Promise<void>;
  /** They are connected still, at `at` in Unix seconds. No news for anybody. */
  touch(nodeIds: readonly string[], at: number): Promise<void>;
}

export interface NodeSeen {
  announced: readonly AnnouncedModel[];
  toolServers: readonly OfferedMcpServer[];
  version: string;
  /** Unix seconds. */
  at: number;
}
