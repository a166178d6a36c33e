// Sessions in real databases of both kinds: found by their tokens' digests, rotated by one request only, ended and
// deleted.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase } from "../../../../tests/support/databases.ts";
import { openTestPeople, type TestPeople } from "../../../../tests/support/people.ts";
import { keyRecordFor } from "../../../../tests/support/principal.ts";
import { storedDeviceCode } from "../../../../tests/support/stored-devices.ts";
import type { AuditEvent } from "../../../domain/audit.ts";
import { commandLineAppId } from "../../../domain/people/app.ts";
import type { DeviceCode } from "../../../domain/people/oauth.ts";
import { type Membership, membershipCredentialId, type Person } from "../../../domain/people/person.ts";
import type { Session, SignInProof } from "../../../domain/people/session.ts";
import { SqlOAuthStore } from "./oauth-store.ts";

let all: TestPeople;
let ada: Person;

onEachDatabase((databases) => {
  beforeEach(async () => {
    all = await openTestPeople(databases);
    ada = await all.addPerson({ email: "ada@example.com", isOperator: true });
  });

  afterEach(() => all.close());

  const now = () => all.clock.nowSeconds();

  function event(action: AuditEvent["action"] = "session.ended"): AuditEvent {
    return {
      id: `audit_${Bun.randomUUIDv7()}`,
      at: now(),
      action,
      actor: { type: "person", id: ada.id },
      accountId: null,
      targetId: null,
      clientAddress: null,
      requestId: null,
      detail: {},
    };
  }

  async function insert(digest: string, more: Partial<Session> = {}): Promise<Session> {
    const session: Session = {
      id: `ses_${Bun.randomUUIDv7()}`,
      personId: ada.id,
      accountId: null,
      method: "passkey",
      userAgent: "Browser",
      clientAddress: "192.0.2.1",
      createdAt: now(),
      lastSeenAt: now(),
      rotatedAt: now(),
      expiresAt: now() + 1_000,
      ...more,
    };
    await all.sessionStore.insert(session, digest, event("session.started"));
    return session;
  }

  const endings = async () =>
    (await all.audit.list({ action: "session.ended" }, { after: undefined, limit: 100 })).length;

  test("begins a session only with a password or passkey that the user still has", async () => {
    await all.db`UPDATE people SET password_hash = 'hash' WHERE id = ${ada.id}`;
    const grace = await all.addPerson({ email: "grace@example.com" });
    await all.db`INSERT INTO passkeys ${all.db({
      ...{ id: "pk", person_id: ada.id, name: "Key", public_key: "", counter: 0, transports: "", backed_up: 0 },
      created_at: now(),
    })}`;
    const begin = async (person: { id: string }, proof: SignInProof) => {
      const session = await insert(`first ${Bun.randomUUIDv7()}`, { personId: person.id });
      const id = `ses_${Bun.randomUUIDv7()}`;
      return all.sessionStore.insert({ ...session, id }, `second ${id}`, event("session.started"), proof);
    };
    expect(await begin(ada, { passwordHash: "hash" })).toBe(true);
    expect(await begin(ada, { passwordHash: "older" })).toBe(false);
    expect(await begin(grace, { passwordHash: "hash" })).toBe(false);
    expect(await begin(ada, { passkeyId: "pk" })).toBe(true);
    expect(await begin(ada, { passkeyId: "removed" })).toBe(false);
    expect(await begin(grace, { passkeyId: "pk" })).toBe(false);
    const started = await all.audit.list({ action: "session.started" }, { after: undefined, limit: 100 });
    expect(started).toHaveLength(6 + 2);
  });

  test("finds a session only by its digest, with its user and memberships", async () => {
    const other = await all.addAccount({ name: "Second", status: "suspended" });
    const [first, second] = [await all.addMember(ada, "owner"), await all.addMember(ada, "member", other.id)];
    const session = await insert("d1");
    expect(await all.sessionStore.findByDigest("d1")).toEqual({
      session,
      person: ada,
      memberships: [
        { ...first, accountName: "First account", accountStatus: "active" },
        { ...second, accountName: "Second", accountStatus: "suspended" },
      ],
      replaced: false,
    });
    expect(await all.sessionStore.findByDigest("d")).toBeUndefined();
  });

  test("replaces a session's digest once for many concurrent requests, and recognizes the previous one", async () => {
    const session = await insert("d0");
    all.clock.advance(1_000);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => all.sessionStore.rotate(session.id, "d0", `n${i}`, now())),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    const winner = `n${outcomes.indexOf(true)}`;
    expect(await all.sessionStore.findByDigest("d0")).toMatchObject({ replaced: true, session: { rotatedAt: now() } });
    expect(await all.sessionStore.findByDigest(winner)).toMatchObject({ replaced: false });
    expect(await all.sessionStore.rotate(session.id, winner, "next", now())).toBe(true);
    expect(await all.sessionStore.findByDigest("d0")).toBeUndefined();
  });

  test("never moves a session's last use back", async () => {
    const session = await insert("d0");
    await all.sessionStore.touch(session.id, now() + 50, "192.0.2.2");
    await all.sessionStore.touch(session.id, now() + 10, "192.0.2.3");
    const found = await all.sessionStore.findByDigest("d0");
    expect(found?.session).toMatchObject({ lastSeenAt: now() + 50, clientAddress: "192.0.2.2" });
  });

  test("stores the selected account of a session", async () => {
    const session = await insert("d0");
    await all.sessionStore.setAccount(session.id, all.accountId);
    expect((await all.sessionStore.findByDigest("d0"))?.session.accountId).toBe(all.accountId);
  });

  test("lists a user's sessions newest first, and ends them once by that user only", async () => {
    const bob = await all.addPerson({ email: "bob@example.com" });
    const [first, second] = [await insert("d1"), await insert("d2")];
    const over = await insert("d3", { expiresAt: now() });
    const bobs = await insert("d4", { personId: bob.id });
    const { sessionStore } = all;
    expect((await sessionStore.list(ada.id, now())).map(({ id }) => id)).toEqual([second.id, first.id]);
    expect(await sessionStore.end(first.id, bob.id, event())).toBe(false);
    expect(await sessionStore.end(first.id, ada.id, event())).toBe(true);
    expect(await sessionStore.end(first.id, ada.id, event())).toBe(false);
    expect(await endings()).toBe(1);
    expect(await sessionStore.findByDigest("d1")).toBeUndefined();
    const third = await insert("d5");
    expect(await sessionStore.endAll(ada.id, third.id, event())).toBe(2);
    expect((await sessionStore.list(ada.id, now())).map(({ id }) => id)).toEqual([third.id]);
    expect(await sessionStore.endAll(ada.id, null, event())).toBe(1);
    expect(await sessionStore.endAll(ada.id, null, event())).toBe(0);
    expect(await endings()).toBe(3);
    expect((await sessionStore.list(bob.id, now())).map(({ id }) => id)).toEqual([bobs.id]);
    expect(await sessionStore.findByDigest("d3")).toBeUndefined();
    expect(over.id).not.toBe(bobs.id);
  });

  describe("CLI logins of a user", () => {
    const thirdParty = "app_third";
    let membership: Membership;

    beforeEach(async () => {
      membership = await all.addMember(ada, "member");
    });

    async function grant(id: string, appId: string, personId = ada.id): Promise<string> {
      const parentId = membershipCredentialId(membership.id, "live");
      const common = { accountId: all.accountId, appId, personId, parentId, environment: "live" } as const;
      await all.keys.insertKey(keyRecordFor({ ...common, id, kind: "grant", digest: id }), event("grant.created"));
      return id;
    }

    /** Adds a device code that is approved and not redeemed yet. */
    async function device(digest: string, appId: string): Promise<void> {
      const code: DeviceCode = {
        ...{ digest, userCode: digest, appId, environment: "live", scopes: ["chat:write"], createdAt: now() },
        ...{ tools: null, quotas: null, resources: ["/v1"] },
        ...{ expiresAt: now() + 600, intervalSeconds: 5, polledAt: null, state: "approved", personId: ada.id },
        ...{ accountId: all.accountId, membershipId: membership.id, grantId: null },
      };
      expect(await oauth().insertDeviceCode(code)).toBe(true);
    }

    const oauth = () => new SqlOAuthStore(all.db);
    const isRevoked = async (id: string) => (await all.keys.findChainById(id))?.keys[0].revoked;

    test("ends CLI logins with all sessions, unfetched ones too, but no other app's or user's", async () => {
      await insert("d1");
      const own = [await grant("grt_1", commandLineAppId), await grant("grt_2", commandLineAppId)];
      const others = [await grant("grt_3", thirdParty), await grant("grt_4", commandLineAppId, "usr_other")];
      for (const appId of [commandLineAppId, thirdParty]) await device(`of ${appId}`, appId);
      const revision = await all.keys.credentialRevision();
      expect(await all.sessionStore.endAll(ada.id, null, event())).toBe(3);
      expect(await Promise.all([...own, ...others].map(isRevoked))).toEqual([true, true, false, false]);
      expect(await storedDeviceCode(all.db, `of ${commandLineAppId}`)).toBeUndefined();
      expect(await storedDeviceCode(all.db, `of ${thirdParty}`)).toBeDefined();
      expect(await all.keys.credentialRevision()).toBe(revision + 1);
      const reported = await all.audit.list({ action: "grant.revoked" }, { after: undefined, limit: 9 });
      expect(reported.map(({ targetId }) => targetId).toSorted()).toEqual(own);
      for (const one of reported) {
        expect(one).toMatchObject({
          accountId: all.accountId,
          actor: { id: ada.id },
          detail: { reason: "signed_out" },
        });
      }
    });

    test("keeps the CLI login that ends the browser sessions and other logins", async () => {
      await insert("d1");
      const [asking, other] = [await grant("grt_1", commandLineAppId), await grant("grt_2", commandLineAppId)];
      expect(await all.sessionStore.endAll(ada.id, asking, event())).toBe(2);
      expect([await isRevoked(asking), await isRevoked(other)]).toEqual([false, true]);
    });

    test("raises no revision for ended sessions without logins, so that key caches stay warm", async () => {
      await insert("d1");
      const revision = await all.keys.credentialRevision();
      await all.sessionStore.endAll(ada.id, null, event());
      expect(await all.keys.credentialRevision()).toBe(revision);
    });

    test("ends sessions with a change of users that requires it", async () => {
      const [asking, other] = [await grant("grt_1", commandLineAppId), await grant("grt_2", commandLineAppId)];
      const revision = await all.keys.credentialRevision();
      const endSessions = { personId: ada.id, exceptId: asking };
      expect(await all.people.apply({ endSessions }, event("password.changed"))).toBe("done");
      expect([await isRevoked(asking), await isRevoked(other)]).toEqual([false, true]);
      expect(await all.keys.credentialRevision()).toBe(revision + 1);
    });
  });

  test("deletes sessions that ended by age or idleness, and no others", async () => {
    await insert("old", { expiresAt: now() });
    await insert("idle", { lastSeenAt: now() - 100 });
    await insert("current", { lastSeenAt: now() - 99 });
    await all.sessionStore.prune(now(), 100);
    const [row] = await all.db`SELECT count(*) AS n FROM sessions`;
    expect(Number(row?.n)).toBe(1);
    expect(await all.sessionStore.findByDigest("current")).toBeDefined();
  });

  test("stores session tokens only as digests", async () => {
    const { cookie } = await all.startSession(ada);
    const token = cookie.split("=")[1] ?? "";
    expect(token).toHaveLength(43);
    const [row] = await all.db`SELECT * FROM sessions`;
    expect(JSON.stringify(row)).not.toContain(token);
  });
});
