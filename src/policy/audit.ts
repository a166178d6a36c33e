// Makes the events of the audit log.
import type { AuditAction, AuditActor, AuditEvent } from "../domain/audit.ts";
import { actorOf, type Principal } from "../domain/principal.ts";

/** The request that asks for a change; addresses and ids are null for what no client asked for. */
export interface Origin {
  /** Unix seconds. */
  nowSeconds: number;
  clientAddress: string | null;
  requestId: string | null;
}

/** `detail` must have no secret in it: names and plain values only. */
export function auditEvent(
  action: AuditAction,
  by: Principal | AuditActor,
  origin: Origin,
  about: Pick<AuditEvent, "accountId" | "targetId" | "detail">,
): AuditEvent {
  return {
    id: `audit_${Bun.randomUUIDv7()}`,
    at: origin.nowSeconds,
    action,
    actor: "keys" in by ? actorOf(by) : by,
    accountId: about.accountId,
    targetId: about.targetId,
    clientAddress: origin.clientAddress,
    requestId: origin.requestId,
    detail: about.detail,
  };
}

/** The members that differ, each with what it was and what it became. */
export function changedMembers(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Record<string, { before: unknown; after: unknown }> {
  const changed: Record<string, { before: unknown; after: unknown }> = {};
  for (const name of Object.keys(after)) {
    if (Bun.deepEquals(before[name], after[name])) continue;
    changed[name] = { before: before[name], after: after[name] };
  }
  return changed;
}
