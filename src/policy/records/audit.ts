// Creates the events of the audit log.
import type { Acting, ActorStatus, AuditAction, AuditActor, AuditEvent } from "../../domain/audit.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { actorOf, keyOf, type Principal } from "../../domain/principal.ts";

/** A person who is signed in at a page. */
type Visitor = { person: Pick<SignedIn["person"], "id">; session: Pick<SignedIn["session"], "id"> };

/** The request that asks for a change. Address and ids are null for changes that no client requested. */
export interface Origin {
  /** The time of the request in Unix seconds. */
  nowSeconds: number;
  clientAddress: string | null;
  requestId: string | null;
}

/** `detail` must not contain secrets: names and plain values only. */
export function auditEvent(
  action: AuditAction,
  by: Principal | Visitor | AuditActor,
  origin: Origin,
  about: Pick<AuditEvent, "accountId" | "targetId" | "detail">,
): AuditEvent {
  return {
    ...actingOf(by, origin.nowSeconds, about.accountId),
    id: `audit_${Bun.randomUUIDv7()}`,
    action,
    targetId: about.targetId,
    clientAddress: origin.clientAddress,
    requestId: origin.requestId,
    detail: about.detail,
  };
}

/** Returns an event about the installation, which belongs to no account. */
export function aboutInstallation(targetId: string | null, detail: AuditEvent["detail"]) {
  return { accountId: null, targetId, detail };
}

/**
 * Returns the actor and time of a change. The change is stored without an audit event, and only while the actor is
 * still active.
 */
export function actingOf(by: Principal | Visitor | AuditActor, at: number, accountId: string | null): Acting {
  const actorStatus = actorStatusOf(by, accountId);
  return { at, actor: actorIn(by), accountId, ...(actorStatus ? { actorStatus } : {}) };
}

function actorIn(by: Principal | Visitor | AuditActor): AuditActor {
  if ("keys" in by) return actorOf(by);
  return "session" in by ? { type: "person", id: by.person.id } : by;
}

function actorStatusOf(by: Principal | Visitor | AuditActor, accountId: string | null): ActorStatus | undefined {
  if ("session" in by) return { sessionId: by.session.id, credentialId: null, role: null, isOperator: false };
  if (!("keys" in by && by.person)) return undefined;
  const { sessionId, role, isOperator } = by.person;
  const isHere = by.account.id === accountId;
  const credentialId = sessionId === null ? keyOf(by).id : null;
  return { sessionId, credentialId, role: isHere ? role : null, isOperator };
}

/** Returns the members that differ, each with its old and new value. */
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
