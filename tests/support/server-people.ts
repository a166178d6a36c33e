// People, memberships, sessions and logins for a running test server, written straight to its database.
import { join } from "node:path";
import { SQL } from "bun";
import { BrowserSessions } from "../../src/accounts/browser-sessions.ts";
import { systemClock } from "../../src/base/clock.ts";
import { GatewayError } from "../../src/base/errors.ts";
import type { Environment } from "../../src/domain/api-key.ts";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import { type Membership, membershipCredentialId, type Person } from "../../src/domain/people/person.ts";
import type { Role } from "../../src/domain/people/role.ts";
import { accountScopes, type Scope } from "../../src/domain/scope.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import type { Database } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";
import { SqlPersonStore } from "../../src/storage/tables/people/person-store.ts";
import { SqlSessionStore } from "../../src/storage/tables/people/session-store.ts";
import type { TestServer } from "./headrace.ts";
import { cookieHeader, testOrigin } from "./people.ts";
import { accountFor, keyRecordFor } from "./principal.ts";
import { anyCredential } from "./unlimited.ts";

/** A person with a membership and a browser in which they are signed in. */
export interface SignedInMember {
  person: Person;
  membership: Membership;
  sessionId: string;
  /** What a browser's page sends with a request that only reads. */
  reading: Record<string, string>;
  /** The headers of a request that changes something. */
  headers: Record<string, string>;
}

export type ServerPeople = ReturnType<typeof openServerPeople>;

/** `accountId` is the installation's first account. */
export function openServerPeople(server: TestServer) {
  const db: Database = new SQL({ adapter: "sqlite", filename: join(server.dataDir, "headrace.db") });
  // The server of the same process may be writing: SQLite's own waiting would keep it from ever finishing.
  const opened = db.unsafe("PRAGMA busy_timeout = 0");
  const people = new SqlPersonStore(db);
  const keys = new SqlKeyStore(db);
  const csrfKey = server.governance.keyFor("csrf-v1");
  const sessionStore = new SqlSessionStore(db);
  const sessions = new BrowserSessions({
    unknown: anyCredential,
    sessions: sessionStore,
    csrfKey,
    isSecure: () => false,
    clock: systemClock,
    log: { warn: () => {} },
  });
  const accountId = server.firstKey.record.accountId;
  const now = () => systemClock.nowSeconds();
  const event = (
    action: "person.updated" | "member.updated" | "grant.created" | "account.created",
    account = accountId,
  ) =>
    auditEvent(
      action,
      { type: "operator" },
      { nowSeconds: now(), clientAddress: null, requestId: null },
      { accountId: account, targetId: null, detail: {} },
    );
  const write = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    await opened;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== "service_unavailable") throw error;
        await Bun.sleep(5);
      }
    }
  };

  async function addPerson(name: string, isOperator = false): Promise<Person> {
    const person = {
      id: `usr_${Bun.randomUUIDv7()}`,
      email: `${name}-${Bun.randomUUIDv7()}@example.test`,
      name,
      isEmailProven: true,
      isOperator,
      suspendedAt: null,
      createdAt: now(),
    };
    await write(() => people.apply({ addPerson: { ...person, passwordHash: null } }, event("person.updated")));
    return person;
  }

  async function addMembership(person: Person, role: Role, account = accountId): Promise<Membership> {
    const membership = {
      id: `mbr_${Bun.randomUUIDv7()}`,
      accountId: account,
      personId: person.id,
      role,
      seesAllUsage: false,
      createdAt: now(),
    };
    await write(() => people.apply({ addMembership: membership }, event("member.updated", account)));
    return membership;
  }

  async function startSession(person: Person, account: string | null = accountId) {
    const started = await write(() => sessions.start(person, account, "password", testOrigin));
    const reading = { cookie: cookieHeader(started.cookie) };
    const csrf = sessions.csrfTokenOf(started.session.id);
    const sessionId = started.session.id;
    return { sessionId, reading, headers: { ...reading, origin: server.url, "x-csrf-token": csrf } };
  }

  return {
    ...{ db, people, keys, sessionStore, accountId, event, write, addPerson, addMembership, startSession },

    async addMember(role: Role, { isOperator = false, account = accountId } = {}): Promise<SignedInMember> {
      const person = await addPerson(role, isOperator);
      const membership = await addMembership(person, role, account);
      return { person, membership, ...(await startSession(person, account)) };
    },

    async addAccount(status: "active" | "suspended" = "active"): Promise<string> {
      const account = accountFor({ id: `acct_${Bun.randomUUIDv7()}`, tier: "enterprise", status });
      await write(() => new SqlAccountStore(db).insertAccount(account, event("account.created", account.id)));
      return account.id;
    },

    setRole: (membership: Membership, role: Role) =>
      write(() => people.setRole(membership.id, role, event("member.updated"))),
    removeMembership: (membership: Membership) =>
      write(() => people.removeMembership(membership.id, event("member.updated"))),

    /** An access token of an app that the member allowed; `headrace login` unless said otherwise. */
    async allow(
      { person, membership }: Pick<SignedInMember, "person" | "membership">,
      options: { appId?: string; scopes?: readonly Scope[]; environment?: Environment } = {},
    ) {
      const { appId = commandLineAppId, scopes = accountScopes, environment = "dev" } = options;
      const id = `grt_${Bun.randomUUIDv7()}`;
      const grant = keyRecordFor({
        ...{ id, digest: id, kind: "grant", appId, personId: person.id, accountId: membership.accountId, scopes },
        ...{ environment, prefix: "", last4: "", createdAt: now() },
        parentId: membershipCredentialId(membership.id, environment),
      });
      await write(() => keys.insertKey(grant, event("grant.created")));
      const { accessToken } = await server.governance.tokens.issueForGrant({
        ...{ grant, personId: person.id, appId, scopes, resources: ["/v1"], expiresIn: 600 },
      });
      return { grantId: id, headers: { authorization: `Bearer ${accessToken}` } };
    },

    close: () => db.close(),
  };
}
