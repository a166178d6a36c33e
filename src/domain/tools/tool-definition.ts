// What servers say of their tools, and what of it an operator has approved: a description is read by models as if it were ours.
import type { AuditEvent } from "../audit.ts";
import type { McpServer } from "./mcp-server.ts";

export const definitionStates = ["approved", "pending", "changed", "refused"] as const;
/** `pending`: it is new. `changed`: it was approved, and says something else now. */
export type DefinitionState = (typeof definitionStates)[number];

export const definitionKinds = ["tool", "prompt", "instructions"] as const;

/** A tool or a prompt as its server described it, or what it says of how it is to be used. Times in Unix seconds. */
export interface ToolDefinition {
  readonly server: string;
  readonly kind: (typeof definitionKinds)[number];
  /** The server's own name of it. */
  readonly name: string;
  readonly state: DefinitionState;
  /** Hex SHA-256 of its canonical JSON, as it was approved; null where it never was. */
  readonly approvedDigest: string | null;
  /** JSON text with the origin of its server: as it was approved, and as it is now. */
  readonly approved: string | null;
  readonly seen: string;
  /** Digests of what else is approved of it, and was refused: to each person the server may say something else. The latest first. */
  readonly approvedOthers: readonly string[];
  readonly refused: readonly string[];
  readonly seenAt: number;
  readonly decidedAt: number | null;
  /** Id of who decided; null: it was there when the server was first seen. */
  readonly decidedBy: string | null;
}

/** A part of the list of a server's definitions, which is by kind and name. */
export interface DefinitionPage {
  /** The last one of the part before. */
  readonly after: Pick<ToolDefinition, "kind" | "name"> | undefined;
  readonly limit: number;
  /** Only those that wait for an operator. */
  readonly isWaiting: boolean;
}

export interface DefinitionStore {
  /** All of one server. */
  listDefinitions(server: string): Promise<ToolDefinition[]>;
  findDefinition(server: string, one: Pick<ToolDefinition, "kind" | "name">): Promise<ToolDefinition | undefined>;
  /** Without the marks of a server that has none of a kind. */
  pageDefinitions(server: string, page: DefinitionPage): Promise<ToolDefinition[]>;
  /** How many of each server are new, or say something else than was approved; those without any are left out. */
  countWaiting(): Promise<ReadonlyMap<string, number>>;
  /** What servers were seen to say; what was decided before of the same stays, unless `definition` says otherwise. */
  putSeen(definitions: readonly ToolDefinition[]): Promise<void>;
  /** Writes the decision. False where the definition is not there, or was seen to be another one since `seen`. */
  decide(definition: ToolDefinition, seen: string, event: AuditEvent): Promise<boolean>;
}

/** The lists of servers, checked against what is approved; kept in memory, and asked on every list and every call. */
export interface DefinitionGuard {
  /**
   * Gives those of what the server listed just now that may be offered, in the same order and unchanged. What is new or
   * changed is put on record, and so is that it had none. `lacks`: whether the server says that it has none of the other kind.
   */
  offered(
    server: Pick<McpServer, "name" | "approval" | "place" | "credentials">,
    kind: ToolDefinition["kind"],
    listed: readonly Readonly<Record<string, unknown>>[],
    lacks?: boolean,
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
}
