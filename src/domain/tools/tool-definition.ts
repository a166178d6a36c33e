// Tool definitions of MCP servers, and their approvals. Approval matters, because models trust these texts as if the
// gateway had written them.
import type { AuditEvent } from "../audit.ts";
import type { McpServer } from "./mcp-server.ts";

export const definitionStates = ["approved", "pending", "changed", "refused"] as const;
/** `pending`: new, not decided yet. `changed`: differs from the approved version. */
export type DefinitionState = (typeof definitionStates)[number];

export const definitionKinds = ["tool", "prompt", "instructions"] as const;

/** A server's definition of a tool or prompt, or the server's instructions. Times in Unix seconds. */
export interface ToolDefinition {
  readonly server: string;
  readonly kind: (typeof definitionKinds)[number];
  /** The name of the tool or prompt at its server. */
  readonly name: string;
  readonly state: DefinitionState;
  /** Hex SHA-256 of the approved definition as canonical JSON. Null if none was approved. */
  readonly approvedDigest: string | null;
  /** The approved version as JSON text, with the origin of its server. `seen` is the version that was seen last. */
  readonly approved: string | null;
  readonly seen: string;
  /**
   * Digests of further versions that were approved or refused, the latest first. There may be several, because a server
   * may describe a tool differently to each person.
   */
  readonly approvedOthers: readonly string[];
  readonly refused: readonly string[];
  readonly seenAt: number;
  readonly decidedAt: number | null;
  /** Id of the actor who decided. Null if nobody has decided, or if the first version was approved automatically. */
  readonly decidedBy: string | null;
}

/** A page of a server's definitions, ordered by kind and name. */
export interface DefinitionPage {
  /** The last definition of the previous page. */
  readonly after: Pick<ToolDefinition, "kind" | "name"> | undefined;
  readonly limit: number;
  /** True if only definitions that wait for an operator are wanted. */
  readonly isWaiting: boolean;
}

export interface DefinitionStore {
  /** Returns every definition of a server. */
  listDefinitions(server: string): Promise<ToolDefinition[]>;
  findDefinition(server: string, one: Pick<ToolDefinition, "kind" | "name">): Promise<ToolDefinition | undefined>;
  /**
   * Returns a page of a server's definitions. Internal rows, which say that a server has no definitions of a kind, are
   * left out.
   */
  pageDefinitions(server: string, page: DefinitionPage): Promise<ToolDefinition[]>;
  /** Returns the number of new or changed definitions of each server. Servers without any are left out. */
  countWaiting(): Promise<ReadonlyMap<string, number>>;
  /**
   * Stores definitions as they were last seen, with their state. A decision about the same version stays: only a
   * waiting definition may become approved. A refused definition never becomes approved here.
   */
  putSeen(definitions: readonly ToolDefinition[]): Promise<void>;
  /** Stores a decision. Returns false if the definition does not exist, or its seen version is no longer `seen`. */
  decide(definition: ToolDefinition, seen: string, event: AuditEvent): Promise<boolean>;
}

/** Decides which definitions may be offered. Kept in memory, because this is needed for every list and every call. */
export interface DefinitionGuard {
  /**
   * Returns the listed definitions that may be offered, in the same order and unchanged. Records new and changed
   * definitions, and also that the server has none of this kind. If `lacks` is true, the server has none of the other
   * kind, which is recorded too.
   */
  offered(
    server: Pick<McpServer, "name" | "approval" | "place" | "credentials">,
    kind: ToolDefinition["kind"],
    listed: readonly Readonly<Record<string, unknown>>[],
    lacks?: boolean,
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
}
