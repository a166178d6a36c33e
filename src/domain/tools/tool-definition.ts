// Descriptions of MCP servers and their approvals: models trust descriptions as if the gateway had written them.
import type { AuditEvent } from "../audit.ts";
import type { McpServer } from "./mcp-server.ts";

export const definitionStates = ["approved", "pending", "changed", "refused"] as const;
/** `pending`: new. `changed`: differs from the approved version. */
export type DefinitionState = (typeof definitionStates)[number];

export const definitionKinds = ["tool", "prompt", "instructions"] as const;

/** A tool or a prompt as its server described it, or the server's instructions. Times in Unix seconds. */
export interface ToolDefinition {
  readonly server: string;
  readonly kind: (typeof definitionKinds)[number];
  /** The server's own name of the tool or prompt. */
  readonly name: string;
  readonly state: DefinitionState;
  /** Hex SHA-256 of the approved canonical JSON; null before an approval. */
  readonly approvedDigest: string | null;
  /** The approved version and the version seen last, each as JSON text with the origin of its server. */
  readonly approved: string | null;
  readonly seen: string;
  /**
   * Digests of further approved and of refused versions, the latest first: a server may describe a tool differently to
   * each person.
   */
  readonly approvedOthers: readonly string[];
  readonly refused: readonly string[];
  readonly seenAt: number;
  readonly decidedAt: number | null;
  /**
   * Id of the actor who decided; null: not decided yet, or approved automatically because the server had the definition
   * when it was first seen.
   */
  readonly decidedBy: string | null;
}

/** A page of a server's definitions, ordered by kind and name. */
export interface DefinitionPage {
  /** The last definition of the previous page. */
  readonly after: Pick<ToolDefinition, "kind" | "name"> | undefined;
  readonly limit: number;
  /** Only definitions that wait for an operator. */
  readonly isWaiting: boolean;
}

export interface DefinitionStore {
  /** Returns every definition of a server. */
  listDefinitions(server: string): Promise<ToolDefinition[]>;
  findDefinition(server: string, one: Pick<ToolDefinition, "kind" | "name">): Promise<ToolDefinition | undefined>;
  /** Returns a page without the markers of kinds that a server does not have. */
  pageDefinitions(server: string, page: DefinitionPage): Promise<ToolDefinition[]>;
  /** Returns the number of new or changed definitions by server, without servers that have none. */
  countWaiting(): Promise<ReadonlyMap<string, number>>;
  /**
   * Stores the current definitions. Earlier decisions about the same version stay, unless `definition` overrides them.
   */
  putSeen(definitions: readonly ToolDefinition[]): Promise<void>;
  /** Writes the decision. Returns false if the definition is missing, or has changed since `seen`. */
  decide(definition: ToolDefinition, seen: string, event: AuditEvent): Promise<boolean>;
}

/** Checks the lists of servers against the approvals. Kept in memory, because every list and every call asks it. */
export interface DefinitionGuard {
  /**
   * Returns the listed definitions that may be offered, in the same order and unchanged. Records new and changed ones,
   * and that a server has none. `lacks`: the server reports that it has none of the other kind.
   */
  offered(
    server: Pick<McpServer, "name" | "approval" | "place" | "credentials">,
    kind: ToolDefinition["kind"],
    listed: readonly Readonly<Record<string, unknown>>[],
    lacks?: boolean,
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
}
