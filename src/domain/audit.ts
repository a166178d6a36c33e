// The audit log: who changed which credential or account, when and from where. Never contains a secret.
import type { Role } from "./people/role.ts";

/**
 * `key`: an API key or a token made from it; `person`: a signed-in person; `app`: an OAuth client; `operator`: a person
 * with access to the data directory; `system`: the server itself; `anonymous`: unknown, as at a failed sign-in.
 */
export type AuditActor = { type: "key" | "person" | "app"; id: string } | { type: "operator" | "system" | "anonymous" };

export const auditActions = [
  "key.created",
  "key.updated",
  "key.revoked",
  "key.rotated",
  "key.rotation_set",
  "key.rotation_due",
  "key.suspended",
  "key.resumed",
  "token.issued",
  "credential.refused",
  "account.created",
  "account.updated",
  "account.end_users_changed",
  "organization.created",
  "organization.updated",
  "organization.deleted",
  "organization.account_added",
  "organization.account_removed",
  "tier.changed",
  "tier.deleted",
  "tool.decided",
  "tool_server.created",
  "tool_server.changed",
  "tool_server.deleted",
  "upstream.created",
  "upstream.updated",
  "upstream.deleted",
  "model.created",
  "model.updated",
  "model.deleted",
  "pulled_model.requested",
  "pulled_model.deleted",
  "model_process.changed",
  "node.joined",
  "node.updated",
  "node.deleted",
  "node.connected",
  "node.disconnected",
  "node_token.created",
  "node_token.deleted",
  "replica.updated",
  "documents.applied",
  "cache.cleared",
  "request.viewed",
  "signing_key.created",
  "signing_key.retired",
  "audit.purged",
  "person.created",
  "person.updated",
  "person.deleted",
  "person.suspended",
  "person.resumed",
  "member.added",
  "member.updated",
  "member.removed",
  "limit.requested",
  "limit.granted",
  "limit.refused",
  "invitation.created",
  "invitation.deleted",
  "setup_link.created",
  "password_reset.created",
  "password.changed",
  "session.started",
  "session.ended",
  "sign_in.failed",
  "passkey.added",
  "passkey.removed",
  "identity.linked",
  "app.created",
  "app.updated",
  "app.secret_rotated",
  "app.suspended",
  "app.resumed",
  "app.deleted",
  "grant.created",
  "grant.refreshed",
  "grant.replayed",
  "grant.limited",
  "grant.revoked",
  "device.denied",
  "device.approved",
  "webhook.created",
  "webhook.updated",
  "webhook.secret_rotated",
  "webhook.disabled",
  "webhook.deleted",
  "tool_connection.created",
  "tool_connection.broken",
  "tool_connection.deleted",
] as const;
export type AuditAction = (typeof auditActions)[number];

/**
 * Describes how the acting person was signed in when the request was admitted. The members are null for other actors.
 */
export interface ActorStatus {
  sessionId: string | null;
  /** Id of the OAuth grant of a login with `headrace login`. */
  credentialId: string | null;
  /** The person's role in the account that the change concerns. */
  role: Role | null;
  isOperator: boolean;
}

export interface AuditEvent {
  /** `audit_` and a UUIDv7, so that ids sort by time. */
  id: string;
  /** Unix seconds. */
  at: number;
  action: AuditAction;
  actor: AuditActor;
  /**
   * Describes how the acting person was signed in. Checked again when the change is written, because a right may end
   * while the request body arrives. Not stored.
   */
  actorStatus?: ActorStatus;
  /** The affected account; null if it is unknown, or the event does not concern exactly one account. */
  accountId: string | null;
  /** Id of the changed key, account, signing key or model, or name of the changed tier or upstream. Null if unknown. */
  targetId: string | null;
  /** The network address of the client that requested the change. Null if no client did. */
  clientAddress: string | null;
  requestId: string | null;
  /** Describes what was changed, or why it was refused: names and plain values, never a secret. */
  detail: Readonly<Record<string, unknown>>;
}

/** The party that makes a change. Their rights are checked again when the change is written. */
export type Acting = Pick<AuditEvent, "actor" | "at" | "accountId" | "actorStatus">;

export interface AuditFilter {
  accountId?: string;
  action?: AuditAction;
  targetId?: string;
  /** The period in Unix seconds. `start` is included, `end` is not. */
  start?: number;
  end?: number;
}

export interface AuditLog {
  append(events: readonly AuditEvent[]): Promise<void>;
  /** Lists events, newest first. Begins before the event `after` and ends with the event `downTo`, if given. */
  list(
    filter: AuditFilter,
    page: { after: string | undefined; downTo?: string | undefined; limit: number },
  ): Promise<AuditEvent[]>;
  /**
   * One request scans a limited part of the log, from the event before `after`. Returns the id of the last scanned
   * event, or undefined if the scan reaches the end of the log.
   */
  lastScannedId(filter: AuditFilter, after: string | undefined): Promise<string | undefined>;
}
