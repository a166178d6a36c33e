// Changes keys, accounts and tiers: the work, its audit event and the raised revision in one transaction.

import { invalidApiKey } from "../../base/invalid-api-key.ts";
import type { Acting, ActorStatus, AuditEvent } from "../../domain/audit.ts";
import { type Role, roles } from "../../domain/people/role.ts";
import { keyStatus } from "../../domain/principal.ts";
import type { Database } from "../sql/database.ts";
import { confirmCommits, requireSync } from "../sql/durable-commits.ts";
import { written } from "../sql/outage.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { readChain } from "./credential-rows.ts";
import { raiseRevision } from "./revisions.ts";

/**
 * The result of the work. `changed: false`: nothing was written or recorded. `added`: only new rows, so no cache has to
 * drop anything.
 */
export interface Outcome<Result> {
  result: Result;
  changed: boolean | "added";
  /** The audit event to record instead of the intended one, if the result differs. */
  event?: AuditEvent;
}

const listeners = new WeakMap<Database, () => void>();

/**
 * `committed` is called immediately, before the disk sync, for each change that caches must notice. A reader who learns
 * that a key is revoked must not see it accepted.
 */
export function onCredentialChange(db: Database, committed: () => void): void {
  listeners.set(db, committed);
}

/**
 * Throws `invalid_api_key` if the acting key, session or role ended since its authentication: a request must not create
 * something that outlives the revocation. Throws `service_unavailable` while the database takes no writes, or syncs
 * fail.
 */
export async function changeCredentials<Result>(
  db: Database,
  event: AuditEvent,
  work: (tx: Database) => Promise<Outcome<Result>>,
): Promise<Result> {
  const done = await whileActive(db, event, async (tx) => {
    const outcome = await work(tx);
    if (!outcome.changed) return outcome;
    await insertAuditEvent(tx, outcome.event ?? event);
    if (outcome.changed !== "added") await raiseRevision(tx, "credentials");
    return outcome;
  });
  if (done.changed === true) listeners.get(db)?.();
  // A power cut must not undo a confirmed revocation.
  if (done.changed) await confirmCommits(db);
  return done.result;
}

/**
 * Makes a change that affects no credential, without notifying caches. Throws the same errors as `changeCredentials`.
 */
export async function whileActive<Result>(
  db: Database,
  by: Acting,
  work: (tx: Database) => Promise<Result>,
): Promise<Result> {
  await requireSync(db);
  // An empty transaction is committed, not rolled back, because on SQLite's one connection it may contain other writes.
  const done = await written(db, async (tx) => {
    return (await actorIsActive(tx, by)) ? { result: await work(tx) } : undefined;
  });
  if (done) return done.result;
  throw invalidApiKey("ended_meanwhile");
}

/**
 * Maximum seconds between an event's time and its writing. A revocation in between counts, although its time is later
 * than the event's.
 */
const eventAgeSeconds = 5;

async function actorIsActive(tx: Database, { actor, at, accountId, actorStatus }: Acting): Promise<boolean> {
  if (actor.type === "person") return personMayAct(tx, { id: actor.id, at, accountId, actorStatus });
  return actor.type !== "key" || (await credentialIsActive(tx, actor.id, at));
}

async function credentialIsActive(tx: Database, id: string, at: number): Promise<boolean> {
  const chain = await readChain(tx, { id });
  if (chain?.account.status !== "active") return false;
  return chain.keys.every((key) => keyStatus(key, at + eventAgeSeconds) === "active");
}

interface ActingPerson extends Pick<AuditEvent, "at" | "accountId"> {
  id: string;
  actorStatus: ActorStatus | undefined;
}

interface PersonRow {
  is_operator: number | boolean;
  suspended_at: number | string | null;
  role: Role | null;
  sessions: number | string;
}

/**
 * Reports whether the person is still a member or operator, with all the rights with which the request was admitted.
 */
async function personMayAct(tx: Database, { id, at, accountId, actorStatus }: ActingPerson): Promise<boolean> {
  const { sessionId = null, credentialId = null, role = null, isOperator = false } = actorStatus ?? {};
  const [person]: PersonRow[] = await tx`
    SELECT is_operator, suspended_at,
      (SELECT role FROM memberships WHERE person_id = people.id AND account_id = ${accountId}) AS role,
      (SELECT count(*) FROM sessions WHERE person_id = people.id AND id = ${sessionId}) AS sessions
    FROM people WHERE id = ${id}`;
  if (!person || person.suspended_at !== null || (sessionId !== null && Number(person.sessions) === 0)) return false;
  if (isOperator && !person.is_operator) return false;
  if (credentialId !== null && !(await credentialIsActive(tx, credentialId, at))) return false;
  if (accountId === null || person.is_operator) return true;
  return person.role !== null && (role === null || roles.indexOf(person.role) <= roles.indexOf(role));
}
