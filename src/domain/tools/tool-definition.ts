// What servers say of their tools, and what of it an operator has approved: a description is read by models as if it were ours.

export const definitionStates = ["approved", "pending", "changed", "refused"] as const;
/** `pending`: it is new. `changed`: it was approved, and says something else now. */
export type DefinitionState = (typeof definitionStates)[number];

/** A tool or a prompt as its server described it. Times in Unix seconds. */
export interface ToolDefinition {
  readonly server: string;
  readonly kind: "tool" | "prompt";
  /** The server's own name of it. */
  readonly name: string;
  readonly state: DefinitionState;
  /** Hex SHA-256 of its canonical JSON, as it was approved; null where it never was. */
  readonly approvedDigest: string | null;
  /** JSON text: as it was approved, and as it is now. */
  readonly approved: string | null;
  readonly seen: string;
  readonly seenAt: number;
  readonly decidedAt: number | null;
  /** Id of who decided; null: it was there when the server was first seen. */
  readonly decidedBy: string | null;
}

/** The lists of servers, checked against what is approved; kept in memory, and asked on every list and every call. */
export interface DefinitionGuard {
  /**
   * Gives those of what the server listed just now that may be offered, in the same order and unchanged. What is new or
   * changed is put on record.
   */
  offered(
    server: string,
    kind: ToolDefinition["kind"],
    listed: readonly Readonly<Record<string, unknown>>[],
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Why it may not be called; undefined: it may. As far as it was listed before. */
  refusal(server: string, kind: ToolDefinition["kind"], name: string): DefinitionState | "unknown" | undefined;
}
