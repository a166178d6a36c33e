// Sessions in a real SQLite file: found by their tokens' digests, replaced by one request alone, ended and forgotten.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { openTestPeople, type TestPeople } from "../../tests/support/people.ts";
import type { AuditEvent } from "../domain/audit.ts";
import type { Person } from "../domain/person.ts";
import type { Session } from "../domain/session.ts";

let all: TestPeople;
let ada: Person;

beforeEach(async () => {
  all = await openTestPeople();
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

test("a session is found by its digest, with its person and memberships, and by no other", async () => {
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

test("its digest is replaced by one of many requests at once; the one before is told apart", async () => {
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

test("when it was last seen never goes back", async () => {
  const session = await insert("d0");
  await all.sessionStore.touch(session.id, now() + 50, "192.0.2.2");
  await all.sessionStore.touch(session.id, now() + 10, "192.0.2.3");
  const found = await all.sessionStore.findByDigest("d0");
  expect(found?.session).toMatchObject({ lastSeenAt: now() + 50, clientAddress: "192.0.2.2" });
});

test("the account that is looked at is kept", async () => {
  const session = await insert("d0");
  await all.sessionStore.setAccount(session.id, all.accountId);
  expect((await all.sessionStore.findByDigest("d0"))?.session.accountId).toBe(all.accountId);
});

test("a person's sessions are listed newest first, and end by the person's word alone, each told once", async () => {
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

test("what has ended by age or idleness is forgotten, and nothing else", async () => {
  await insert("old", { expiresAt: now() });
  await insert("idle", { lastSeenAt: now() - 100 });
  await insert("current", { lastSeenAt: now() - 99 });
  await all.sessionStore.prune(now(), 100);
  const [row] = await all.db`SELECT count(*) AS n FROM sessions`;
  expect(Number(row?.n)).toBe(1);
  expect(await all.sessionStore.findByDigest("current")).toBeDefined();
});

test("no token is in the database, only digests", async () => {
  const { cookie } = await all.startSession(ada);
  const token = cookie.split("=")[1] ?? "";
  expect(token).toHaveLength(43);
  const [row] = await all.db`SELECT * FROM sessions`;
  expect(JSON.stringify(row)).not.toContain(token);
});
