// Sessions of people in the database; of their tokens only digests.
import type { AuditEvent } from "../../../domain/audit.ts";
import type { OwnMembership, Person } from "../../../domain/people/person.ts";
import type { Role } from "../../../domain/people/role.ts";
import type { FoundSession, Session, SessionStore, SignInMethod, SignInProof } from "../../../domain/people/session.ts";
import { type Database, writing } from "../../sql/database.ts";
import { available } from "../../sql/outage.ts";
import { insertAuditEvent } from "../audit-log.ts";
import { changeCredentials } from "../credential-change.ts";
import { signOut } from "./sign-outs.ts";

type Integer = number | string;

interface SessionRow {
  id: string;
  person_id: string;
  account_id: string | null;
  method: string;
  user_agent: string;
  client_address: string;
  created_at: Integer;
  last_seen_at: Integer;
  rotated_at: Integer;
  expires_at: Integer;
}

interface FoundRow extends SessionRow {
  digest: string;
  email: string;
  name: string;
  email_proven: number | boolean;
  is_operator: number | boolean;
  person_created_at: Integer;
}

interface MembershipRow {
  id: string;
  account_id: string;
  person_id: string;
  role: string;
  created_at: Integer;
  account_name: string;
  account_status: string;
}

const pruneAtOnce = 500;

export class SqlSessionStore implements SessionStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  insert(session: Session, digest: string, event: AuditEvent, proof?: SignInProof): Promise<boolean> {
    return available(
      writing(this.#db, async (tx) => {
        if (proof && !(await stillProves(tx, session.personId, proof))) return false;
        await tx`INSERT INTO sessions ${tx({ ...toRow(session), digest, previous_digest: null })}`;
        await insertAuditEvent(tx, event);
        return true;
      }),
    );
  }

  async findByDigest(digest: string): Promise<FoundSession | undefined> {
    const [row]: FoundRow[] = await available(this.#db`
      SELECT s.*, p.email, p.name, p.email_proven, p.is_operator, p.created_at AS person_created_at
      FROM sessions s JOIN people p ON p.id = s.person_id
      WHERE s.digest = ${digest} OR s.previous_digest = ${digest}`);
    if (!row) return undefined;
    const person: Person = {
      id: row.person_id,
      email: row.email,
      name: row.name,
      isEmailProven: Boolean(row.email_proven),
      isOperator: Boolean(row.is_operator),
      createdAt: Number(row.person_created_at),
    };
    const memberships = await readOwnMemberships(this.#db, person.id);
    return { session: fromRow(row), person, memberships, replaced: row.digest !== digest };
  }

  async rotate(id: string, from: string, to: string, nowSeconds: number): Promise<boolean> {
    const changed: unknown[] = await available(
      writing(
        this.#db,
        (tx) => tx`
          UPDATE sessions
          SET digest = ${to}, previous_digest = ${from}, rotated_at = ${nowSeconds}, last_seen_at = ${nowSeconds - 1}
          WHERE id = ${id} AND digest = ${from} RETURNING id`,
      ),
    );
    return changed.length > 0;
  }

  async touch(id: string, nowSeconds: number, clientAddress: string): Promise<void> {
    await available(
      writing(
        this.#db,
        (tx) => tx`
          UPDATE sessions SET last_seen_at = ${nowSeconds}, client_address = ${clientAddress}
          WHERE id = ${id} AND last_seen_at <= ${nowSeconds}`,
      ),
    );
  }

  async setAccount(id: string, accountId: string): Promise<void> {
    await available(writing(this.#db, (tx) => tx`UPDATE sessions SET account_id = ${accountId} WHERE id = ${id}`));
  }

  async list(personId: string, nowSeconds: number): Promise<Session[]> {
    const rows: SessionRow[] = await available(this.#db`
      SELECT * FROM sessions WHERE person_id = ${personId} AND expires_at > ${nowSeconds} ORDER BY id DESC`);
    return rows.map(fromRow);
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
      const { sessions, logins } = await signOut(tx, { personId, ...(exceptId === null ? {} : { exceptId }) }, event);
      const result = sessions + logins;
      return { result, changed: logins > 0 || (result > 0 && "added") };
    });
  }

  async prune(nowSeconds: number, idleSeconds: number): Promise<void> {
    await available(
      writing(
        this.#db,
        (tx) => tx`
          DELETE FROM sessions WHERE id IN (
            SELECT id FROM sessions WHERE expires_at <= ${nowSeconds} OR last_seen_at <= ${nowSeconds - idleSeconds}
            LIMIT ${pruneAtOnce}
          )`,
      ),
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

/** Oldest first. */
export async function readOwnMemberships(db: Database, personId: string): Promise<OwnMembership[]> {
  const rows: MembershipRow[] = await available(db`
    SELECT m.*, a.name AS account_name, a.status AS account_status
    FROM memberships m JOIN accounts a ON a.id = m.account_id WHERE m.person_id = ${personId} ORDER BY m.id`);
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    personId: row.person_id,
    role: row.role as Role,
    createdAt: Number(row.created_at),
    accountName: row.account_name,
    accountStatus: row.account_status as OwnMembership["accountStatus"],
  }));
}

function toRow(session: Session): SessionRow {
  return {
    id: session.id,
    person_id: session.personId,
    account_id: session.accountId,
    method: session.method,
    user_agent: session.userAgent,
    client_address: session.clientAddress,
    created_at: session.createdAt,
    last_seen_at: session.lastSeenAt,
    rotated_at: session.rotatedAt,
    expires_at: session.expiresAt,
  };
}

function fromRow(row: SessionRow): Session {
  return {
    id: row.id,
    personId: row.person_id,
    accountId: row.account_id,
    method: row.method as SignInMethod,
    userAgent: row.user_agent,
    clientAddress: row.client_address,
    createdAt: Number(row.created_at),
    lastSeenAt: Number(row.last_seen_at),
    rotatedAt: Number(row.rotated_at),
    expiresAt: Number(row.expires_at),
  };
}
