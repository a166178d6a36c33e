// The audit log: who changed which credential or account, when and from where; never a secret.

/** `key`: an API key or a token made from it; `operator`: whoever has the data directory; `system`: the server itself. */
export type AuditActor = { type: "key"; id: string } | { type: "operator" } | { type: "system" };

export const auditActions = [
  "key.created",
  "key.updated",
  "key.revoked",
  "key.rotated",
  "token.issued",
  "credential.refused",
  "account.created",
  "account.updated",
  "tier.changed",
  "tier.deleted",
  "signing_key.created",
  "signing_key.retired",
] as const;
export type AuditAction = (typeof auditActions)[number];

export interface AuditEvent {
  /** `audit_` and a UUIDv7, so that ids sort by time. */
  id: string;
  /** Unix seconds. */
  at: number;
  action: AuditAction;
  actor: AuditActor;
  /** The account that it concerns; null where that is unknown or no single one. */
  accountId: string | null;
  /** Id of the key, account, tier or signing key; null where unknown. */
  targetId: string | null;
  /** Null for what no client asked for. */
  clientAddress: string | null;
  requestId: string | null;
  /** What changed, or the reason of a refusal: names and plain values, never a secret. */
  detail: Readonly<Record<string, unknown>>;
}

export interface AuditFilter {
  accountId?: string;
  action?: AuditAction;
  targetId?: string;
  /** Unix seconds: from `start`, before `end`. */
  start?: number;
  end?: number;
}

export interface AuditLog {
  append(events: readonly AuditEvent[]): Promise<void>;
  /** Newest first; those before the event `after`. */
  list(filter: AuditFilter, page: { after: string | undefined; limit: number }): Promise<AuditEvent[]>;
}
