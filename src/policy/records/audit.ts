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
    detail: boundedDetail(about.detail),
  };
}

/** Maximum characters of a detail as JSON. Otherwise a client that changes long lists of a key would fill the disk. */
const maxDetailLength = 32 * 1024;
/** Numbers of entries to which lists are shortened, one after the other, until the detail is short enough. */
const shorterLists = [64, 32, 16, 8, 4, 2, 1];

function boundedDetail(detail: AuditEvent["detail"]): AuditEvent["detail"] {
  let bounded = detail;
  for (const most of shorterLists) {
    if (JSON.stringify(bounded).length <= maxDetailLength) break;
    bounded = Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, shortened(value, most)]));
  }
  return bounded;
}

/** Returns the value with at most `most` entries in each of its lists. */
function shortened(value: unknown, most: number): unknown {
  if (Array.isArray(value)) {
    const entries = value.slice(0, most).map((entry) => shortened(entry, most));
    return value.length > most ? [...entries, `and ${value.length - most} more`] : entries;
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shortened(member, most)]));
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
