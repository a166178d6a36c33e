// Sessions of people in the database, with only the digests of their tokens.
import type { AuditEvent } from "../../../domain/audit.ts";
import type { OwnMembership } from "../../../domain/people/person.ts";
import type { FoundSession, Session, SessionStore, SignInProof } from "../../../domain/people/session.ts";
import type { Database } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { integer, table, text } from "../../sql/table.ts";
import { insertAuditEvent } from "../audit-log.ts";
import { changeCredentials } from "../credential-change.ts";
import { ownMemberships, people } from "./person-rows.ts";
import { signOut } from "./sign-outs.ts";

const sessions = table<Session>({
  id: text,
  personId: text,
  accountId: text,
  method: text,
  userAgent: text,
  clientAddress: text,
  createdAt: integer,
  lastSeenAt: integer,
  rotatedAt: integer,
  expiresAt: integer,
});

const pruneAtOnce = 500;

export class SqlSessionStore implements SessionStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  insert(session: Session, digest: string, event: AuditEvent, proof?: SignInProof): Promise<boolean> {
    return written(this.#db, async (tx) => {
      if (proof && !(await stillProves(tx, session.personId, proof))) return false;
      await tx`INSERT INTO sessions ${tx({ ...sessions.row(session), digest, previous_digest: null })}`;
      await insertAuditEvent(tx, event);
      return true;
    });
  }

  async findByDigest(digest: string): Promise<FoundSession | undefined> {
    const [row]: { digest: string; person_id: string; person_created_at: unknown }[] = await available(this.#db`
      SELECT s.*, p.email, p.name, p.email_proven, p.is_operator, p.suspended_at, p.created_at AS person_created_at
      FROM sessions s JOIN people p ON p.id = s.person_id
      WHERE s.digest = ${digest} OR s.previous_digest = ${digest}`);
    if (!row) return undefined;
    const person = people.record({ ...row, id: row.person_id, created_at: row.person_created_at });
    const memberships = await readOwnMemberships(this.#db, person.id);
    return { session: sessions.record(row), person, memberships, replaced: row.digest !== digest };
  }

  async rotate(id: string, from: string, to: string, nowSeconds: number): Promise<boolean> {
    const changed: unknown[] = await written(
      this.#db,
      (tx) => tx`
        UPDATE sessions
        SET digest = ${to}, previous_digest = ${from}, rotated_at = ${nowSeconds}, last_seen_at = ${nowSeconds - 1}
        WHERE id = ${id} AND digest = ${from} RETURNING id`,
    );
    return changed.length > 0;
  }

  async touch(id: string, nowSeconds: number, clientAddress: string): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        UPDATE sessions SET last_seen_at = ${nowSeconds}, client_address = ${clientAddress}
        WHERE id = ${id} AND last_seen_at <= ${nowSeconds}`,
    );
  }

  async setAccount(id: string, accountId: string): Promise<void> {
    await written(this.#db, (tx) => tx`UPDATE sessions SET account_id = ${accountId} WHERE id = ${id}`);
  }

  list(personId: string, nowSeconds: number): Promise<Session[]> {
    const rows = this.#db`
      SELECT * FROM sessions WHERE person_id = ${personId} AND expires_at > ${nowSeconds} ORDER BY id DESC`;
    return available(sessions.all(rows));
  }

  end(id: string, personId: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const ended: unknown[] = await tx`
        DELETE FROM sessions WHERE id = ${id} AND person_id = ${personId} RETURNING id`;
      return { result: ended.length > 0, changed: ended.length > 0 && "added" };
    });
  }

  endAll(personId: string, exceptId: string | null, event: AuditEvent): Promise<number> {
    return changeCredentials(this.#db, event, async (tx) => {
      const ended = await signOut(tx, { personId, ...(exceptId === null ? {} : { exceptId }) }, event);
      const result = ended.sessions + ended.logins;
      return { result, changed: ended.logins > 0 || (result > 0 && "added") };
    });
  }

  async prune(nowSeconds: number, idleSeconds: number): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        DELETE FROM sessions WHERE id IN (
          SELECT id FROM sessions WHERE expires_at <= ${nowSeconds} OR last_seen_at <= ${nowSeconds - idleSeconds}
          LIMIT ${pruneAtOnce}
        )`,
    );
  }
}

async function stillProves(tx: Database, personId: string, proof: SignInProof): Promise<boolean> {
  const found: unknown[] =
    "passkeyId" in proof
      ? await tx`SELECT id FROM passkeys WHERE id = ${proof.passkeyId} AND person_id = ${personId}`
      : await tx`SELECT id FROM people WHERE id = ${personId} AND password_hash = ${proof.passwordHash}`;
  return found.length > 0;
}

/** Returns a person's memberships, oldest first. */
export function readOwnMemberships(db: Database, personId: string): Promise<OwnMembership[]> {
  const rows = db`
    SELECT m.*, a.name AS account_name, a.status AS account_status
    FROM memberships m JOIN accounts a ON a.id = m.account_id WHERE m.person_id = ${personId} ORDER BY m.id`;
  return available(ownMemberships.all(rows));
}
