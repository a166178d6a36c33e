// Signing in with a password: who is known here stays unknown, guessing is slow, and nobody is locked out by others.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { cookieHeader, openTestPeople, type TestPeople, testOrigin } from "../../tests/support/people.ts";
import type { Log, LogFields } from "../base/log.ts";
import { FailedSignIns } from "./failed-sign-ins.ts";
import { isOutdatedHash } from "./passwords.ts";
import { SignIn } from "./sign-in.ts";

const password = "a long enough password";
const wrongMessage = "The e-mail address or the password is wrong.";

let all: TestPeople;
let failures: FailedSignIns;
let signIn: SignIn;
let log: Log;
const throttle = { perAddress: 4, perEmail: 2, windowSeconds: 600 };
let warnings: [string, LogFields | undefined][];

beforeEach(async () => {
  all = await openTestPeople();
  warnings = [];
  const warn = (event: string, fields?: LogFields) => void warnings.push([event, fields]);
  log = { info: warn, warn, error: warn };
  failures = new FailedSignIns({ audit: all.audit, clock: all.clock, log });
  signIn = new SignIn({ ...all, failures, log, throttle });
});

afterEach(async () => {
  await failures.close();
  await all.close();
});

const from = (clientAddress: string) => ({ ...testOrigin, clientAddress });
const attempt = (email: string, given: string, clientAddress = "203.0.113.9") =>
  signIn.password(email, given, from(clientAddress));
/** Code of the refusal; "in" where there was none. */
const outcome = (...args: Parameters<typeof attempt>) =>
  attempt(...args).then(
    () => "in",
    (error) => error.code as string,
  );

async function recorded() {
  await failures.flush();
  const events = await all.audit.list({ action: "sign_in.failed" }, { after: undefined, limit: 1_000 });
  return events.toReversed();
}

test("starts a session for the right password in the account of the oldest membership", async () => {
  const ada = await all.addPerson({ email: "ada@example.com", password });
  await all.addMember(ada, "member");
  const started = await attempt(" ADA@example.com", password);
  expect(started).toMatchObject({ person: ada, session: { method: "password", accountId: all.accountId } });
  const current = await all.sessions.find(cookieHeader(started.cookie), testOrigin);
  expect(current?.signedIn.person).toEqual(ada);
  expect(JSON.stringify(started)).not.toContain("argon2");
});

test("answers a wrong password, an unknown address and a missing password alike, but audits them apart", async () => {
  const ada = await all.addPerson({ email: "ada@example.com", password });
  const bob = await all.addPerson({ email: "bob@example.com" });
  for (const email of ["ada@example.com", "nobody@example.com", "bob@example.com"]) {
    const error = await attempt(email, "not the password").catch((thrown) => thrown);
    expect({ ...error, message: error.message }).toEqual({
      ...{ name: "GatewayError", code: "invalid_request", message: wrongMessage },
      ...{ detail: undefined, retryAfterSeconds: undefined, shouldRetry: undefined },
    });
  }
  expect(await recorded()).toMatchObject([
    { actor: { type: "anonymous" }, targetId: ada.id, detail: { reason: "wrong_password" } },
    { actor: { type: "anonymous" }, targetId: null, clientAddress: "203.0.113.9", detail: { reason: "unknown_email" } },
    { actor: { type: "anonymous" }, targetId: bob.id, detail: { reason: "no_password" } },
  ]);
  const written = JSON.stringify(await recorded());
  for (const sent of ["not the password", "nobody@"]) expect(written).not.toContain(sent);
});

test("throttles known and unknown addresses at the same count", async () => {
  await all.addPerson({ email: "ada@example.com", password });
  const tries = async (email: string, network: string) => {
    const outcomes = [];
    for (let i = 0; i < 4; i++) outcomes.push(await outcome(email, "not the password", `${network}.${i}`));
    return outcomes;
  };
  const expected = [...Array(2).fill("invalid_request"), "rate_limit_exceeded", "rate_limit_exceeded"];
  expect(await tries("ada@example.com", "192.0.2")).toEqual(expected);
  expect(await tries("nobody@example.com", "198.51.100")).toEqual(expected);
  const error = await attempt("ada@example.com", password, "192.0.2.99").catch((thrown) => thrown);
  expect(error.message).toBe("Too many attempts to sign in failed. Try again in 5 minutes.");
  expect(error.retryAfterSeconds).toBe(300);
});

test("throttles a client over all addresses, by network for IPv6", async () => {
  const tries = async (addressOf: (i: number) => string, name: string) => {
    const outcomes = [];
    for (let i = 0; i < 5; i++) outcomes.push(await outcome(`${name}${i}@example.com`, "x", addressOf(i)));
    return outcomes.filter((code) => code === "rate_limit_exceeded").length;
  };
  expect(await tries(() => "192.0.2.1", "a")).toBe(1);
  expect(await tries((i) => `2001:db8:1:2::${i}`, "b")).toBe(1);
  expect(await tries((i) => `2001:db8:1:10${i}::1`, "c")).toBe(0);
});

test("counts only failed sign-ins, concurrent ones too", async () => {
  await all.addPerson({ email: "ada@example.com", password });
  for (let i = 0; i < 5; i++) expect(await outcome("ada@example.com", password)).toBe("in");
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => outcome("ada@example.com", "not the password")));
  expect(outcomes.filter((code) => code === "invalid_request")).toHaveLength(2);
});

test("does not lock a user out at a known client during a stranger's guesses, or elsewhere afterwards", async () => {
  await all.addPerson({ email: "ada@example.com", password });
  expect(await outcome("ada@example.com", password, "203.0.113.1")).toBe("in");
  for (let i = 0; i < 5; i++) await outcome("ada@example.com", "a guess", `192.0.2.${i}`);
  expect(await outcome("ada@example.com", password, "192.0.2.77")).toBe("rate_limit_exceeded");
  expect(await outcome("ada@example.com", password, "203.0.113.1")).toBe("in");
  all.clock.advance(300_000);
  expect(await outcome("ada@example.com", password, "192.0.2.77")).toBe("in");
});

test("recognizes a known client in every process", async () => {
  await all.addPerson({ email: "ada@example.com", password });
  expect(await outcome("ada@example.com", password, "203.0.113.1")).toBe("in");
  signIn = new SignIn({ ...all, failures, log, throttle });
  for (let i = 0; i < 5; i++) await outcome("ada@example.com", "a guess", `192.0.2.${i}`);
  expect(await outcome("ada@example.com", password, "192.0.2.77")).toBe("rate_limit_exceeded");
  expect(await outcome("ada@example.com", password, "203.0.113.1")).toBe("in");
});

test("limits guesses from a known client too", async () => {
  await all.addPerson({ email: "ada@example.com", password });
  await attempt("ada@example.com", password);
  const outcomes = [];
  for (let i = 0; i < 5; i++) outcomes.push(await outcome("ada@example.com", "a guess"));
  expect(outcomes.filter((code) => code === "invalid_request")).toHaveLength(2);
});

test("bounds the audit log during a flood of sign-ins", async () => {
  const ada = await all.addPerson({ email: "ada@example.com", password });
  for (let i = 0; i < 300; i++) failures.record("unknown_email", null, testOrigin);
  failures.record("wrong_password", ada.id, testOrigin);
  await failures.close();
  const events = await recorded();
  expect(events).toHaveLength(102);
  expect(events.filter(({ targetId }) => targetId === ada.id)).toHaveLength(1);
  const suppressed = { reason: "suppressed", suppressed: 200, reasons: { unknown_email: 200 } };
  expect(events.find(({ actor }) => actor.type === "system")?.detail).toEqual(suppressed);
});

test("renews an outdated hash at sign-in, and keeps a current one", async () => {
  await all.addPerson({ email: "ada@example.com", password });
  const hash = async () => (await all.people.findByEmail("ada@example.com"))?.passwordHash ?? "";
  expect(isOutdatedHash(await hash())).toBe(true);
  await attempt("ada@example.com", password);
  const renewed = await hash();
  expect(isOutdatedHash(renewed)).toBe(false);
  await attempt("ada@example.com", password);
  expect(await hash()).toBe(renewed);
});

test("refuses a password that changed during its comparison", async () => {
  const ada = await all.addPerson({ email: "ada@example.com", password });
  const people = {
    ...{ membershipsOf: all.people.membershipsOf.bind(all.people), apply: all.people.apply.bind(all.people) },
    reads: 0,
    async findByEmail(email: string) {
      if (this.reads++ === 1) {
        await all.db`UPDATE people SET password_hash = 'another' WHERE id = ${ada.id}`;
      }
      return all.people.findByEmail(email);
    },
  };
  const log = { info() {}, warn() {}, error() {} };
  const racing = new SignIn({ ...all, people, failures, log });
  await expect(racing.password("ada@example.com", password, testOrigin)).rejects.toThrow(wrongMessage);
  expect(await all.sessionStore.list(ada.id, all.clock.nowSeconds())).toEqual([]);
});

test("leaves no session if the password changes while the session is created", async () => {
  const ada = await all.addPerson({ email: "ada@example.com", password });
  const people = {
    ...{ findByEmail: all.people.findByEmail.bind(all.people), apply: all.people.apply.bind(all.people) },
    async membershipsOf(id: string) {
      await all.db`UPDATE people SET password_hash = 'another' WHERE id = ${ada.id}`;
      return all.people.membershipsOf(id);
    },
  };
  const log = { info() {}, warn() {}, error() {} };
  const racing = new SignIn({ ...all, people, failures, log });
  await expect(racing.password("ada@example.com", password, testOrigin)).rejects.toThrow(/changed meanwhile/);
  expect(await all.sessionStore.list(ada.id, all.clock.nowSeconds())).toEqual([]);
  expect(await recorded()).toEqual([]);
});

test("refuses an invalid address without auditing an attempt", async () => {
  await expect(attempt("ada", password)).rejects.toThrow(/^email: /);
  expect(await recorded()).toEqual([]);
});
