// The queue of audit events that leave for receivers outside. Filled in the transaction that adds an event.
import { GatewayError } from "../../../base/errors.ts";
import type { AuditAction, AuditEvent } from "../../../domain/audit.ts";
import { type Database, databaseSeconds } from "../../sql/database.ts";

const retryAfterSeconds = 60;

/**
 * Actions that end access, sign in, or happen in the course of model requests. They are never refused. The summary of
 * applied documents is not refused either, because each of its changes was checked on its own.
 */
const neverRefused: ReadonlySet<AuditAction> = new Set([
  ...(["credential.refused", "token.issued", "grant.refreshed", "grant.replayed"] as const),
  ...(["session.started", "session.ended", "sign_in.failed", "node.connected", "node.disconnected"] as const),
  ...(["key.revoked", "key.suspended", "person.suspended", "member.removed", "passkey.removed"] as const),
  ...(["app.suspended", "grant.revoked", "device.denied", "invitation.deleted", "node_token.deleted"] as const),
  ...(["person.deleted", "app.deleted", "node.deleted", "tool_connection.deleted", "limit.refused"] as const),
  ...(["identity.linked", "password.changed", "signing_key.retired", "documents.applied"] as const),
]);

/**
 * Queues events, unless no receiver wants them. Call it in the transaction that adds the events. Throws
 * `service_unavailable` for an action that must be exported while a receiver has failed for too long.
 */
export async function queueEvents(tx: Database, events: readonly AuditEvent[]): Promise<void> {
  if (events.length === 0) return;
  const now = () => databaseSeconds(tx);
  const sinks: { late: number | boolean | null; now: number | string }[] = await tx`
    SELECT coalesce(failing_since, seen_at) < ${now()} - max_audit_lag AS late, ${now()} AS now
    FROM export_sinks WHERE audit = 1`;
  const [sink] = sinks;
  if (!sink) return;
  if (sinks.some(({ late }) => Boolean(late)) && events.some(isRefusable)) throw notExported();
  const rows = events.map(({ id }) => ({ record_id: id, kind: "audit", queued_at: Number(sink.now) }));
  await tx`INSERT INTO export_queue ${tx(rows)} ON CONFLICT (record_id) DO NOTHING`;
}

/** Commands beside the server, and the server itself, are not refused: they serve to repair an installation. */
function isRefusable({ action, actor, detail }: AuditEvent): boolean {
  // An account is suspended by a change of its status.
  const { status, ...others } = (action === "account.updated" ? detail : {}) as Record<string, { after?: unknown }>;
  const isSuspension = status?.after === "suspended" && Object.keys(others).length === 0;
  return "id" in actor && !neverRefused.has(action) && !isSuspension;
}

function notExported(): GatewayError {
  return new GatewayError(
    "service_unavailable",
    "Nothing was changed: the audit events of this installation do not reach their receiver, and its operator requires that (audit.required). Retry in a minute, or ask the operator to repair the export: `headrace doctor` has its error.",
    { detail: "audit: not exported", retryAfterSeconds },
  );
}
