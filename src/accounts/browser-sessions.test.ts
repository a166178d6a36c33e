// Sessions as browsers have them: a cookie that is replaced, ends by time and theft, and proves what comes from our pages.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cookieHeader, openTestPeople, type TestPeople, testOrigin } from "../../tests/support/people.ts";
import { anyCredential } from "../../tests/support/unlimited.ts";
import type { Person } from "../domain/people/person.ts";
import { BrowserSessions, type CurrentSession, idleSeconds } from "./browser-sessions.ts";

let all: TestPeople;
let ada: Person;

beforeEach(async () => {
  all = await openTestPeople();
  ada = await all.addPerson({ email: "ada@example.com" });
});

afterEach(() => all.close());

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const find = (cookie: string, origin = testOrigin) => all.sessions.find(cookie, origin);

/** What the browser has after the answer. */
function next(cookie: string, current: CurrentSession | undefined): string {
  return current?.cookie === undefined ? cookie : cookieHeader(current.cookie);
}

/** A session whose token was just replaced: both tokens. */
async function rotated(): Promise<{ old: string; fresh: string; id: string }> {
  const { cookie, session } = await all.startSession(ada);
  all.clock.advance(hourMs);
  const fresh = next(cookie, await find(cookie));
  expect(fresh).not.toBe(cookie);
  return { old: cookie, fresh, id: session.id };
}

const endReasons = async () =>
  (await all.audit.list({ action: "session.ended" }, { after: undefined, limit: 10 })).map(
    ({ detail }) => detail["reason"],
  );

describe("the session cookie", () => {
  const start = (isSecure: boolean) => {
    const csrfKey = new Uint8Array(32).fill(1);
    const sessions = new BrowserSessions({
      unknown: anyCredential,
      sessions: all.sessionStore,
      csrfKey,
      isSecure: () => isSecure,
      clock: all.clock,
      log: { warn: () => {} },
    });
    return { sessions, started: sessions.start(ada, null, "password", testOrigin) };
  };

  test("hides the cookie from scripts and other sites, and binds it to the host over https", async () => {
    const { cookie } = await start(true).started;
    expect(cookie).toMatch(
      /^__Host-headrace_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=7776000; Secure$/,
    );
    const plain = await start(false).started;
    expect(plain.cookie).toMatch(/^headrace_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=7776000$/);
  });

  test("does not accept a secure cookie under a name that another site of the domain could set", async () => {
    const { sessions, started } = start(true);
    const header = cookieHeader((await started).cookie);
    expect(await sessions.find(header, testOrigin)).toBeDefined();
    expect(sessions.hasCookie(header.replace("__Host-", ""))).toBe(false);
    // Browsers take the prefix for one only where nothing is before it, a blank of whatever kind included.
    for (const blank of ["\u00a0", "\u2000", "\ufeff", "\u000b", "\u000c"]) {
      expect([blank, sessions.hasCookie(blank + header)]).toEqual([blank, false]);
    }
    expect(await sessions.find(header.replace("__Host-", ""), testOrigin)).toBeUndefined();
  });

  test("finds the cookie among others, and rejects a repeated, malformed or unknown one", async () => {
    const { cookie } = await all.startSession(ada);
    expect((await find(`a=b; ${cookie};c=d`))?.signedIn.person).toEqual(ada);
    const name = cookie.split("=")[0];
    for (const header of [
      ...["", "a=b", `${cookie}; ${cookie}`, `${cookie}; ${name}=x`, `x${cookie}`],
      ...[cookie.slice(0, -1), `${cookie}A`, `${name}=${"A".repeat(43)}`, `${name}=`],
    ]) {
      expect(await find(header)).toBeUndefined();
    }
    expect(await all.sessions.find(null, testOrigin)).toBeUndefined();
    expect(all.sessions.hasCookie(null)).toBe(false);
    expect(all.sessions.hasCookie(cookie)).toBe(true);
  });
});

test("gives each sign-in its own token, and describes the session", async () => {
  const membership = await all.addMember(ada, "owner");
  const [one, two] = [await all.startSession(ada), await all.startSession(ada)];
  expect(one.cookie).not.toBe(two.cookie);
  const long = "x".repeat(400);
  const { session } = await all.sessions.start(ada, null, "sso", { ...testOrigin, userAgent: long });
  expect(session).toMatchObject({ method: "sso", userAgent: long.slice(0, 300), clientAddress: "203.0.113.9" });
  const [event] = await all.audit.list({ action: "session.started" }, { after: undefined, limit: 1 });
  expect(event).toMatchObject({
    actor: { type: "person", id: ada.id },
    targetId: session.id,
    detail: { method: "sso" },
  });
  const current = await find(one.cookie);
  expect(current?.signedIn.membership?.id).toBe(membership.id);
});

test("selects the user's first account if the session has none or a left one", async () => {
  const { cookie } = await all.startSession(ada);
  expect((await find(cookie))?.signedIn.membership).toBeUndefined();
  const other = await all.addAccount();
  const second = await all.addMember(ada, "member", other.id);
  const { cookie: gone } = await all.startSession(ada, "acct_left");
  expect((await find(gone))?.signedIn.membership?.id).toBe(second.id);
});

describe("the token of a session", () => {
  test("replaces the token of a session after an hour, and accepts the new one", async () => {
    const { cookie } = await all.startSession(ada);
    all.clock.advance(hourMs - 1_000);
    expect((await find(cookie))?.cookie).toBeUndefined();
    all.clock.advance(1_000);
    const fresh = next(cookie, await find(cookie));
    expect(fresh).not.toBe(cookie);
    expect((await find(fresh))?.cookie).toBeUndefined();
  });

  test("accepts the previous token for concurrent requests, and gives one of them the new token", async () => {
    const { cookie } = await all.startSession(ada);
    all.clock.advance(hourMs);
    const found = await Promise.all(Array.from({ length: 10 }, () => find(cookie)));
    expect(found.every((current) => current?.signedIn.person.id === ada.id)).toBe(true);
    const fresh = found.flatMap((current) => (current?.cookie === undefined ? [] : [current.cookie]));
    expect(fresh).toHaveLength(1);
    await find(cookieHeader(fresh[0] ?? ""));
    all.clock.advance(59_000);
    expect(await find(cookie)).toMatchObject({ cookie: undefined, signedIn: { person: ada } });
  });

  test("ends a session whose previous token is used later, as it was copied", async () => {
    const { old, fresh } = await rotated();
    expect(await find(fresh)).toBeDefined();
    all.clock.advance(60_000);
    expect(await find(old)).toBeUndefined();
    expect(await find(fresh)).toBeUndefined();
    expect(await endReasons()).toEqual(["replaced_token_used"]);
  });

  test("accepts the previous token if its successor was lost, until the successor is used", async () => {
    const { old, fresh } = await rotated();
    all.clock.advance(30 * 60_000);
    expect(await find(old)).toMatchObject({ cookie: undefined, signedIn: { person: ada } });
    expect(await find(old)).toBeDefined();
    expect(await find(fresh)).toBeDefined();
    expect(await find(old)).toBeUndefined();
    expect(await find(fresh)).toBeUndefined();
    expect(await endReasons()).toEqual(["replaced_token_used"]);
  });

  test("rejects the token before the previous one", async () => {
    const { old, fresh } = await rotated();
    all.clock.advance(hourMs);
    const newest = next(fresh, await find(fresh));
    expect(await find(old)).toBeUndefined();
    expect(await find(newest)).toBeDefined();
  });
});

describe("the end of a session", () => {
  // long-lived: browserSession.idle
  test("ends a session after two weeks without a request, however young its cookie is", async () => {
    const { cookie } = await all.startSession(ada);
    all.clock.advance(idleSeconds * 1_000 - 1_000);
    const fresh = next(cookie, await find(cookie));
    expect(await find(fresh)).toBeDefined();
    all.clock.advance(idleSeconds * 1_000);
    expect(await find(fresh)).toBeUndefined();
  });

  // long-lived: browserSession.age
  test("ends a session after ninety days of use", async () => {
    let { cookie } = await all.startSession(ada);
    for (let day = 1; day < 90; day++) {
      all.clock.advance(dayMs);
      const current = await find(cookie);
      expect(current).toBeDefined();
      cookie = next(cookie, current);
    }
    all.clock.advance(dayMs);
    expect(await find(cookie)).toBeUndefined();
  });

  // long-lived: browserSession.credential
  test("ends a session on sign-out, on the server and in the browser", async () => {
    const { cookie } = await all.startSession(ada);
    const current = await find(cookie);
    if (!current) throw new Error("not signed in");
    const cleared = await all.sessions.end(current.signedIn, testOrigin);
    expect(cleared).toBe("headrace_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    expect(await find(cookie)).toBeUndefined();
    expect(await endReasons()).toEqual(["signed_out"]);
  });
});

test("records when and from where a session was last used, to the minute", async () => {
  const { cookie, session } = await all.startSession(ada);
  const seen = async () => (await all.sessionStore.list(ada.id, all.clock.nowSeconds())).at(0);
  all.clock.advance(59_000);
  await find(cookie);
  expect((await seen())?.lastSeenAt).toBe(session.createdAt);
  all.clock.advance(1_000);
  await find(cookie);
  expect((await seen())?.lastSeenAt).toBe(session.createdAt + 60);
  await find(cookie, { ...testOrigin, clientAddress: "198.51.100.7" });
  expect((await seen())?.clientAddress).toBe("198.51.100.7");
});

describe("a read-only database for sessions", () => {
  const readOnly = (on: boolean) => all.db.unsafe(`PRAGMA query_only = ${on ? "ON" : "OFF"}`);
  const detail = "database: SQLITE_READONLY";

  test.each([
    ["to be seen", 60_000],
    ["a new token", hourMs],
  ])("keeps a session that is due %s on a read-only database, and logs that once a minute", async (_, afterMs) => {
    const { cookie } = await all.startSession(ada);
    all.clock.advance(afterMs);
    await readOnly(true);
    const reported = { event: "session_not_renewed", fields: { detail } };
    for (let n = 0; n < 5; n++)
      expect(await find(cookie)).toMatchObject({ cookie: undefined, signedIn: { person: ada } });
    expect(all.warnings).toEqual([reported]);
    all.clock.advance(59_999);
    await find(cookie);
    expect(all.warnings).toEqual([reported]);
    all.clock.advance(1);
    await find(cookie);
    expect(all.warnings).toEqual([reported, reported]);
    await readOnly(false);
    const current = await find(cookie);
    expect(current?.cookie === undefined).toBe(afterMs < hourMs);
    expect(current?.signedIn.person).toEqual(ada);
    expect(await find(next(cookie, current))).toMatchObject({ signedIn: { person: ada } });
  });

  test("refuses a copied previous token on a read-only database too", async () => {
    const { old, fresh } = await rotated();
    await find(fresh);
    all.clock.advance(60_000);
    await readOnly(true);
    expect(await find(old).catch((error: { detail: string }) => error.detail)).toBe(detail);
  });
});

test("keeps the CSRF token of a session while its cookie changes", async () => {
  const [one, two] = [await all.startSession(ada), await all.startSession(ada)];
  expect(one.csrfToken).not.toBe(two.csrfToken);
  all.clock.advance(hourMs);
  const current = await find(one.cookie);
  if (!current) throw new Error("not signed in");
  expect(all.sessions.csrfMatches(current.signedIn, one.csrfToken)).toBe(true);
  for (const wrong of ["", two.csrfToken, one.csrfToken.slice(1), `${one.csrfToken}A`, "é".repeat(43)]) {
    expect(all.sessions.csrfMatches(current.signedIn, wrong)).toBe(false);
  }
});
