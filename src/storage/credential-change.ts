// The one way in which keys, accounts and tiers change: the work, its audit event and the raised revision, or nothing.
import type { AuditEvent } from "../domain/audit.ts";
import { GatewayError } from "../domain/errors.ts";
import { keyStatus } from "../domain/principal.ts";
import { insertAuditEvent } from "./audit-log.ts";
import { readChain } from "./credential-rows.ts";
import type { Database } from "./database.ts";
import { syncCommits } from "./durable-commits.ts";
import { available } from "./outage.ts";

/**
 * What the work came to; with `changed: false` it wrote nothing, and nothing is recorded. `added`: there is something new,
 * which nobody can have remembered, so no cache has to forget what it has.
 */
export interface Outcome<Result> {
  result: Result;
  changed: boolean | "added";
  /** Told in the place of the event that was meant: something else came of it. */
  event?: AuditEvent;
}

/**
 * Throws `invalid_api_key` where the key that acts ended since it was authenticated: a request in flight must not make
 * something that outlives the revocation. Throws `service_unavailable` while the database takes no writes.
 */
export async function changeCredentials<Result>(
  db: Database,
  event: AuditEvent,
  work: (tx: Database) => Promise<Outcome<Result>>,
): Promise<Result> {
  let outcome: Outcome<Result> | undefined;
  await available(
    // An empty transaction is committed, not rolled back: on SQLite's one connection, what others write meanwhile is in it.
    db.begin("IMMEDIATE", async (tx) => {
      if (!(await actorIsActive(tx, event))) return;
      outcome = await work(tx);
      if (!outcome.changed) return;
      await insertAuditEvent(tx, outcome.event ?? event);
      if (outcome.changed !== "added") await tx`UPDATE credential_revision SET revision = revision + 1 WHERE id = 1`;
    }),
  );
  const done = outcome as Outcome<Result> | undefined;
  if (!done) throw new GatewayError("invalid_api_key", "Invalid API key provided", { detail: "ended_meanwhile" });
  // A power cut must not undo a revocation that was answered. Where the disk cannot be asked, the change stands all the same.
  if (done.changed) await syncCommits(db).catch(() => {});
  return done.result;
}

/** An event may be made this long before it is written: a revocation in between counts, though its time is later. */
const eventAgeSeconds = 5;

async function actorIsActive(tx: Database, { actor, at, accountId }: AuditEvent): Promise<boolean> {
  if (actor.type === "person") return personMayAct(tx, actor.id, accountId);
  if (actor.type !== "key") return true;
  const chain = await readChain(tx, { id: actor.id });
  if (chain?.account.status !== "active") return false;
  return chain.keys.every((key) => keyStatus(key, at + eventAgeSeconds) === "active");
}

/** A member still, or an operator. */
async function personMayAct(tx: Database, personId: string, accountId: string | null): Promise<boolean> {
  const [person] = await tx`
    SELECT is_operator, (
      SELECT count(*) FROM memberships WHERE person_id = people.id AND account_id = ${accountId}
    ) AS memberships FROM people WHERE id = ${personId}`;
  return person !== undefined && (accountId === null || Number(person.memberships) > 0 || Boolean(person.is_operator));
}
