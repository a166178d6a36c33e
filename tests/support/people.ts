// People, accounts and sessions on a real database, with a clock that a test moves.
import { type BrowserOrigin, BrowserSessions } from "../../src/accounts/browser-sessions.ts";
import type { LogFields } from "../../src/base/log.ts";
import type { Account } from "../../src/domain/account.ts";
import { type Membership, normalizedEmail, type Person, type PersonStore } from "../../src/domain/people/person.ts";
import type { Role } from "../../src/domain/people/role.ts";
import type { Session } from "../../src/domain/people/session.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";
import { SqlPendingStore } from "../../src/storage/tables/people/pending-store.ts";
import { SqlPersonStore } from "../../src/storage/tables/people/person-store.ts";
import { SqlSessionStore } from "../../src/storage/tables/people/session-store.ts";
import { sqliteDatabases, type TestDatabases } from "./databases.ts";
import { manualClock } from "./manual-clock.ts";
import { accountFor } from "./principal.ts";
import { anyCredential } from "./unlimited.ts";

export const testOrigin: BrowserOrigin = { clientAddress: "203.0.113.9", requestId: "req_1", userAgent: "Test/1.0" };

export interface NewPerson {
  email: string;
  name?: string;
  /** Without one, the person cannot sign in by password. */
  password?: string;
  isEmailProven?: boolean;
  isOperator?: boolean;
}

export interface StartedSession {
  session: Session;
  /** Value of the `Cookie` header. */
  cookie: string;
  csrfToken: string;
}

export type TestPeople = Awaited<ReturnType<typeof openTestPeople>>;

/** `accountId` is the installation's first account; it has no members yet. */
export async function openTestPeople(databases: Pick<TestDatabases, "open"> = sqliteDatabases()) {
  const opened = await databases.open();
  const { db } = opened;
  const clock = manualClock();
  const people = new SqlPersonStore(db);
  const sessionStore = new SqlSessionStore(db);
  const keys = new SqlKeyStore(db);
  const accounts = new SqlAccountStore(db);
  const audit = new SqlAuditLog(db);
  const pending = { store: new SqlPendingStore(db), sealingKey: new Uint8Array(32).fill(9), clock };
  const csrfKey = new Uint8Array(32).fill(5);
  const warnings: { event: string; fields: LogFields | undefined }[] = [];
  const log = { warn: (event: string, fields?: LogFields) => void warnings.push({ event, fields }) };
  const sessions = new BrowserSessions({
    unknown: anyCredential,
    sessions: sessionStore,
    csrfKey,
    isSecure: () => false,
    clock,
    log,
  });
  // Nothing here has a quota, for which the ledger would be read.
  const limits = new MemoryLimits({ clock, ledger: { readTotals: () => Promise.reject(new Error("no ledger")) } });
  const accountId = await accounts.ensureFirstAccount(clock.nowSeconds());
  const byConsole = (action: "person.created" | "member.added" | "account.created", about: string | null) =>
    auditEvent(
      action,
      { type: "operator" },
      { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null },
      { accountId: about, targetId: null, detail: {} },
    );
  return {
    directory: opened.directory,
    ...{ db, clock, people, sessionStore, keys, accounts, audit, sessions, limits, accountId, warnings, pending },

    async addAccount(changes: Partial<Account> = {}): Promise<Account> {
      const account = accountFor({
        id: `acct_${Bun.randomUUIDv7()}`,
        tier: "enterprise",
        createdAt: clock.nowSeconds(),
        ...changes,
      });
      await accounts.insertAccount(account, byConsole("account.created", account.id));
      return account;
    },

    async addPerson(about: NewPerson): Promise<Person> {
      const { email, name = "Test Person", password, isEmailProven = true, isOperator = false } = about;
      const createdAt = clock.nowSeconds();
      const person: Person = {
        id: `usr_${Bun.randomUUIDv7()}`,
        email: normalizedEmail(email),
        name,
        isEmailProven,
        isOperator,
        suspendedAt: null,
        createdAt,
      };
      const passwordHash = password === undefined ? null : await quickHash(password);
      const outcome = await people.apply({ addPerson: { ...person, passwordHash } }, byConsole("person.created", null));
      if (outcome !== "done") throw new Error(`${email}: ${outcome}`);
      return person;
    },

    async addMember(person: Person, role: Role, inAccount = accountId): Promise<Membership> {
      const membership: Membership = {
        id: `mbr_${Bun.randomUUIDv7()}`,
        accountId: inAccount,
        personId: person.id,
        role,
        quotas: [],
        tools: null,
        seesAllUsage: false,
        createdAt: clock.nowSeconds(),
      };
      const outcome = await people.apply({ addMembership: membership }, byConsole("member.added", inAccount));
      if (outcome !== "done") throw new Error(`${person.email}: ${outcome}`);
      return membership;
    },

    /** In the account given, or else in the one that the person is the longest a member of. */
    async startSession(person: Person, inAccount?: string): Promise<StartedSession> {
      const own = await people.membershipsOf(person.id);
      const started = await sessions.start(person, inAccount ?? own[0]?.accountId ?? null, "password", testOrigin);
      const cookie = cookieHeader(started.cookie);
      const current = await sessions.find(cookie, testOrigin);
      if (!current) throw new Error("The session that was started is not found.");
      return { session: started.session, cookie, csrfToken: current.signedIn.csrfToken };
    },

    /** With an id that a test chooses; for whatever only asks whether it is there. */
    async addSession(person: Pick<Person, "id">, id: string): Promise<void> {
      const [times, texts] = [clock.nowSeconds(), ""];
      await db`DELETE FROM sessions WHERE id = ${id}`;
      await db`INSERT INTO sessions ${db({
        ...{ id, digest: id, person_id: person.id, method: "password", user_agent: texts, client_address: texts },
        ...{ created_at: times, last_seen_at: times, rotated_at: times, expires_at: times + 86_400 },
      })}`;
    },

    async close(): Promise<void> {
      await opened.close();
    },
  };
}

/** What a browser sends back for a `Set-Cookie`. */
export function cookieHeader(setCookie: string): string {
  return setCookie.split(";")[0] ?? "";
}

/** With the least work that argon2id takes: a test that signs people in need not wait for it. */
function quickHash(password: string): Promise<string> {
  return Bun.password.hash(password, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
}

/** How many there are. */
export async function operators(people: Pick<PersonStore, "listPeople">): Promise<number> {
  const all = await people.listPeople({ after: undefined, limit: 500 });
  return all.filter(({ isOperator }) => isOperator).length;
}
