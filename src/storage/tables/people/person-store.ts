// People, their memberships, one-time links and passkeys in the database.
import type { SQL } from "bun";
import type { AuditEvent } from "../../../domain/audit.ts";
import type { QuotaRule } from "../../../domain/limits/quota-rules.ts";
import type {
  Member,
  Membership,
  OneTimeLink,
  OwnMembership,
  Passkey,
  PeopleChange,
  PeopleConflict,
  Person,
  PersonStore,
} from "../../../domain/people/person.ts";
import type { Role } from "../../../domain/people/role.ts";
import type { Database } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { changeCredentials, type Outcome } from "../credential-change.ts";
import {
  changeQuotas,
  changeRole,
  changeSight,
  changeTools,
  endMembership,
  isLastOwner,
  readMembership,
} from "./membership-changes.ts";
import { conflictOf, writeChange } from "./people-change.ts";
import { members, memberships, oneTimeLinks, passkeys, people, peopleWithPasswords } from "./person-rows.ts";
import { readOwnMemberships } from "./session-store.ts";

/** `added` means that no cache has to drop anything: caches of credentials hold only memberships and logins. */
const notCached = "added";

/** Seconds for which used and expired links stay, to answer a late use. The audit log keeps them permanently. */
const linksKeptSeconds = 30 * 86_400;
/** Maximum number of rows in a transaction, because other writers wait for it. */
const pruneAtOnce = 500;

export class SqlPersonStore implements PersonStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  findPerson(id: string): Promise<Person | undefined> {
    return available(people.first(this.#db`SELECT * FROM people WHERE id = ${id}`));
  }

  findByEmail(email: string): Promise<(Person & { passwordHash: string | null }) | undefined> {
    return available(peopleWithPasswords.first(this.#db`SELECT * FROM people WHERE email = ${email}`));
  }

  findByIdentity(issuer: string, subject: string): Promise<Person | undefined> {
    const rows = this.#db`
      SELECT p.* FROM people p JOIN identities i ON i.person_id = p.id
      WHERE i.issuer = ${issuer} AND i.subject = ${subject}`;
    return available(people.first(rows));
  }

  listPeople({ after, limit }: { after: string | undefined; limit: number }): Promise<Person[]> {
    const db = this.#db;
    const rows = db`
      SELECT * FROM people ${after === undefined ? db`` : db`WHERE id > ${after}`} ORDER BY id LIMIT ${limit}`;
    return available(people.all(rows));
  }

  apply(change: PeopleChange, event: AuditEvent): Promise<"done" | PeopleConflict> {
    return changeCredentials(this.#db, event, async (tx): Promise<Outcome<"done" | PeopleConflict>> => {
      const conflict = await conflictOf(tx, change);
      if (conflict) return { result: conflict, changed: false };
      const { logins } = await writeChange(tx, change, event);
      return { result: "done", changed: logins > 0 || change.setSuspended !== undefined || notCached };
    });
  }

  deletePerson(id: string, event: AuditEvent): Promise<"done" | "missing" | "operator"> {
    return changeCredentials(this.#db, event, async (tx): Promise<Outcome<"done" | "missing" | "operator">> => {
      const person = await people.first(tx`SELECT * FROM people WHERE id = ${id}`);
      if (!person) return { result: "missing", changed: false };
      if (person.isOperator) return { result: "operator", changed: false };
      const held = await memberships.all(tx`SELECT * FROM memberships WHERE person_id = ${id}`);
      for (const membership of held) await endMembership(tx, membership, event.at);
      await tx`DELETE FROM identities WHERE person_id = ${id}`;
      await tx`DELETE FROM passkeys WHERE person_id = ${id}`;
      await tx`DELETE FROM sessions WHERE person_id = ${id}`;
      await tx`DELETE FROM one_time_links WHERE person_id = ${id} OR (created_by = ${id} AND used_at IS NULL)`;
      await tx`DELETE FROM notice_mutes WHERE person_id = ${id}`;
      await tx`DELETE FROM people WHERE id = ${id}`;
      return { result: "done", changed: true };
    });
  }

  membershipsOf(personId: string): Promise<OwnMembership[]> {
    return readOwnMemberships(this.#db, personId);
  }

  findMembership(id: string): Promise<Membership | undefined> {
    return available(readMembership(this.#db, id));
  }

  listMembers(accountId: string, { after, limit }: { after: string | undefined; limit: number }): Promise<Member[]> {
    const db = this.#db;
    const rows = db`
      SELECT m.*, p.email, p.name, (SELECT max(last_seen_at) FROM sessions WHERE person_id = p.id) AS last_seen_at
      FROM memberships m JOIN people p ON p.id = m.person_id WHERE m.account_id = ${accountId}
      ${after === undefined ? db`` : db`AND m.id > ${after}`} ORDER BY m.id LIMIT ${limit}`;
    return available(members.all(rows));
  }

  setRole(id: string, role: Role, event: AuditEvent): Promise<"done" | "missing" | "last_owner"> {
    return this.#changeMembership(id, event, async (tx, membership) => {
      if (membership.role === role) return "same";
      if (role !== "owner" && (await isLastOwner(tx, membership))) return "last_owner";
      await changeRole(tx, membership, role);
      return "done";
    });
  }

  setQuotas(id: string, quotas: readonly QuotaRule[], event: AuditEvent): Promise<"done" | "missing" | "last_owner"> {
    return this.#changeMembership(id, event, async (tx, membership) => {
      await changeQuotas(tx, membership, quotas);
      return "done";
    });
  }

  setTools(id: string, tools: readonly string[] | null, event: AuditEvent): Promise<"done" | "missing" | "last_owner"> {
    return this.#changeMembership(id, event, async (tx, membership) => {
      await changeTools(tx, membership, tools);
      return "done";
    });
  }

  setSeesAllUsage(id: string, seesAllUsage: boolean, event: AuditEvent): Promise<"done" | "missing" | "last_owner"> {
    return this.#changeMembership(id, event, async (tx, membership) => {
      await changeSight(tx, membership, seesAllUsage);
      return "done";
    });
  }

  removeMembership(id: string, event: AuditEvent): Promise<"done" | "missing" | "last_owner"> {
    return this.#changeMembership(id, event, async (tx, membership) => {
      if (await isLastOwner(tx, membership)) return "last_owner";
      await endMembership(tx, membership, event.at);
      return "done";
    });
  }

  async insertLink(link: OneTimeLink, event: AuditEvent): Promise<void> {
    await changeCredentials(this.#db, event, async (tx) => {
      await writeLink(tx, link);
      return { result: undefined, changed: notCached };
    });
  }

  ensureLink(link: OneTimeLink, after: number, event: AuditEvent): Promise<OneTimeLink> {
    return changeCredentials(this.#db, event, async (tx) => {
      const open = await oneTimeLinks.first(tx`
        SELECT * FROM one_time_links
        WHERE purpose = ${link.purpose} AND used_at IS NULL AND expires_at > ${after} ORDER BY id DESC LIMIT 1`);
      if (open) return { result: open, changed: false };
      await writeLink(tx, link);
      return { result: link, changed: notCached };
    });
  }

  findLink(digest: string): Promise<OneTimeLink | undefined> {
    return available(oneTimeLinks.first(this.#db`SELECT * FROM one_time_links WHERE digest = ${digest}`));
  }

  listInvitations(accountId: string, nowSeconds: number): Promise<OneTimeLink[]> {
    return this.#invitations(this.#db`account_id = ${accountId}`, nowSeconds);
  }

  findInvitations(email: string, nowSeconds: number): Promise<OneTimeLink[]> {
    return this.#invitations(this.#db`email = ${email}`, nowSeconds);
  }

  deleteInvitation(id: string, accountId: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const deleted: unknown[] = await tx`
        DELETE FROM one_time_links
        WHERE id = ${id} AND account_id = ${accountId} AND purpose = 'invitation' AND used_at IS NULL RETURNING id`;
      return found(deleted);
    });
  }

  async pruneLinks(nowSeconds: number): Promise<void> {
    const ended = nowSeconds - linksKeptSeconds;
    await written(
      this.#db,
      (tx) => tx`
        DELETE FROM one_time_links WHERE id IN (
          SELECT id FROM one_time_links WHERE expires_at <= ${ended} OR used_at <= ${ended} LIMIT ${pruneAtOnce})`,
    );
  }

  listPasskeys(personId: string): Promise<Passkey[]> {
    const rows = this.#db`SELECT * FROM passkeys WHERE person_id = ${personId} ORDER BY created_at, id`;
    return available(passkeys.all(rows));
  }

  findPasskey(id: string): Promise<Passkey | undefined> {
    return available(passkeys.first(this.#db`SELECT * FROM passkeys WHERE id = ${id}`));
  }

  insertPasskey(passkey: Passkey, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const added: unknown[] = await tx`
        INSERT INTO passkeys ${tx(passkeys.row(passkey))} ON CONFLICT (id) DO NOTHING RETURNING id`;
      return found(added);
    });
  }

  /**
   * Records a use. If the authenticator has a counter, it must rise: of two uses with the same counter, one is by a
   * copy of the passkey.
   */
  async passkeyUsed(id: string, counter: number, backedUp: boolean, nowSeconds: number): Promise<boolean> {
    const used: unknown[] = await written(
      this.#db,
      (tx) => tx`
        UPDATE passkeys SET counter = ${counter}, backed_up = ${backedUp ? 1 : 0}, last_used_at = ${nowSeconds}
        WHERE id = ${id} AND (counter < ${counter} OR (counter = 0 AND ${counter} = 0)) RETURNING id`,
    );
    return used.length > 0;
  }

  async renamePasskey(id: string, personId: string, name: string): Promise<boolean> {
    const renamed: unknown[] = await written(
      this.#db,
      (tx) => tx`UPDATE passkeys SET name = ${name} WHERE id = ${id} AND person_id = ${personId} RETURNING id`,
    );
    return renamed.length > 0;
  }

  deletePasskey(id: string, personId: string, event: AuditEvent): Promise<boolean> {
    return changeCredentials(this.#db, event, async (tx) => {
      const deleted: unknown[] = await tx`
        DELETE FROM passkeys WHERE id = ${id} AND person_id = ${personId} RETURNING id`;
      return found(deleted);
    });
  }

  /** Returns unused, valid invitations, newest first. */
  #invitations(whose: SQL.Query<unknown>, nowSeconds: number): Promise<OneTimeLink[]> {
    const rows = this.#db`
      SELECT * FROM one_time_links
      WHERE ${whose} AND purpose = 'invitation' AND used_at IS NULL AND expires_at > ${nowSeconds}
      ORDER BY id DESC`;
    return available(oneTimeLinks.all(rows));
  }

  #changeMembership(
    id: string,
    event: AuditEvent,
    work: (tx: Database, membership: Membership) => Promise<"done" | "same" | "last_owner">,
  ): Promise<"done" | "missing" | "last_owner"> {
    return changeCredentials(this.#db, event, async (tx): Promise<Outcome<"done" | "missing" | "last_owner">> => {
      const membership = await readMembership(tx, id);
      if (!membership) return { result: "missing", changed: false };
      const result = await work(tx, membership);
      return { result: result === "same" ? "done" : result, changed: result === "done" };
    });
  }
}

function found(rows: readonly unknown[]): Outcome<boolean> {
  return { result: rows.length > 0, changed: rows.length > 0 && notCached };
}

/** Replaces unused links for the same purpose and receiver. */
async function writeLink(tx: Database, link: OneTimeLink): Promise<void> {
  const { purpose, personId, email, accountId } = link;
  await tx`
    DELETE FROM one_time_links WHERE purpose = ${purpose} AND used_at IS NULL
    ${purpose === "password_reset" ? tx`AND person_id = ${personId}` : tx``}
    ${purpose === "invitation" ? tx`AND email = ${email} AND account_id = ${accountId}` : tx``}`;
  await tx`INSERT INTO one_time_links ${tx(oneTimeLinks.row(link))}`;
}
