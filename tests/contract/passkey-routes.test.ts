// The endpoints of passkeys as a page meets them: whose they are, where they may be used from, how many tries there are.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FailedSignIns } from "../../src/accounts/failed-sign-ins.ts";
import { Passkeys } from "../../src/accounts/passkeys.ts";
import { passkeyRoutes } from "../../src/http/api/people/passkey-routes.ts";
import { isOwnOrigin, pageOrigin } from "../../src/http/exchange/browser.ts";
import { Locality } from "../../src/http/exchange/locality.ts";
import type { PersonPrincipal } from "../../src/http/exchange/route.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { cookieHeader, openTestPeople, type TestPeople, testOrigin } from "../support/people.ts";
import { principalFor } from "../support/principal.ts";
import { SoftwareAuthenticator } from "../support/software-authenticator.ts";

const locality = new Locality([]);
const origin = "http://localhost:7545";
let world: TestPeople;
let failures: FailedSignIns;
let routes: ReturnType<typeof passkeyRoutes>;

beforeAll(async () => {
  world = await openTestPeople();
  const { people, audit, clock, sessions } = world;
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  failures = new FailedSignIns({ audit, clock, log });
  routes = passkeyRoutes({
    ...{ people, clock, sessions, sessionStore: world.sessionStore },
    passkeys: new Passkeys({ people, failures, clock, pending: world.pending }),
    limits: new MemoryLimits({ clock, ledger: { readTotals: async () => {} } }),
    isOwnOrigin: (from, req) => isOwnOrigin(from, req, undefined, locality),
    requestLimits: () => ({ bodyBytes: 65_536, depth: 16 }),
  });
});
afterAll(async () => {
  await failures.close();
  await world.close();
});

interface Call {
  body?: unknown;
  principal?: PersonPrincipal;
  headers?: Record<string, string>;
  id?: string;
  clientAddress?: string;
}

async function call(
  method: string,
  path: string,
  { body, principal, headers = {}, id, clientAddress = "127.0.0.1" }: Call,
) {
  const route = routes.find((one) => one.method === method && one.path === path);
  if (!route) throw new Error(`${method} ${path} is not served`);
  const req = incoming({ method, target: path, headers: { host: "localhost:7545", origin, ...headers }, body });
  const exchange = exchangeFor(req, { params: { id: id ?? "" }, clientAddress });
  const response = await responseOf(() => {
    if (route.access === "public") return route.handle(exchange);
    if (route.access !== "person" || !principal) throw new Error(`${path} is for a person`);
    return route.handle(exchange, principal);
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer };
}

// biome-ignore lint/suspicious/noExplicitAny: JSON of several shapes, which the expectations are about.
type Answer = any;

async function member(email: string, sessionId: string | null = `ses_${email}`) {
  const person = await world.addPerson({ email });
  await world.addMember(person, "member");
  if (sessionId !== null) await world.addSession(person, sessionId);
  const signedIn = { id: person.id, role: "member", isOperator: false, sessionId } as const;
  return { person, principal: { ...principalFor(), person: signedIn } };
}

async function withPasskey(email: string) {
  const { person, principal } = await member(email);
  const device = new SoftwareAuthenticator(origin);
  const options = await call("POST", "/v1/passkeys/options", { principal });
  const body = { name: "Laptop", response: device.create(options.body) };
  const added = await call("POST", "/v1/passkeys", { principal, body });
  expect(added.status).toBe(200);
  return { person, principal, device, passkey: added.body };
}

async function signInBody(device: SoftwareAuthenticator, more: Record<string, unknown> = {}) {
  const { body } = await call("POST", "/sign-in/passkey/options", {});
  return { challenge_id: body.challenge_id, response: device.get(body.options), ...more };
}

describe("a person's own passkeys", () => {
  test("adds, lists, renames and removes passkeys without showing their keys", async () => {
    const { principal, passkey } = await withPasskey("own@example.com");
    expect(passkey).toEqual({
      ...{ object: "passkey", id: passkey.id, name: "Laptop", backed_up: true },
      ...{ created_at: world.clock.nowSeconds(), last_used_at: null },
    });
    expect((await call("GET", "/v1/passkeys", { principal })).body).toMatchObject({ data: [passkey], has_more: false });
    const renamed = await call("PATCH", "/v1/passkeys/:id", { principal, id: passkey.id, body: { name: "Desk" } });
    expect(renamed.body).toEqual({ ...passkey, name: "Desk" });
    const removed = await call("DELETE", "/v1/passkeys/:id", { principal, id: passkey.id });
    expect(removed.body).toEqual({ object: "passkey.deleted", id: passkey.id, deleted: true });
    expect((await call("GET", "/v1/passkeys", { principal })).body.data).toEqual([]);
  });

  test("adds a passkey only within 15 minutes of signing in", async () => {
    const { person, principal } = await member("later@example.com");
    world.clock.advance(15 * 60_000);
    expect((await call("POST", "/v1/passkeys/options", { principal })).status).toBe(200);
    world.clock.advance(1_000);
    const { status, body } = await call("POST", "/v1/passkeys/options", { principal });
    expect([status, body.error.code]).toEqual([403, "permission_denied"]);
    expect(body.error.message).toStartWith("You signed in more than 15 minutes ago. Sign out and in again");
    await world.addSession(person, "ses_again");
    const again = { ...principal, person: { ...principal.person, sessionId: "ses_again" } };
    expect((await call("POST", "/v1/passkeys/options", { principal: again })).status).toBe(200);
  });

  test("hides another person's passkeys", async () => {
    const { passkey } = await withPasskey("mine@example.com");
    const { principal } = await member("other@example.com");
    const call1 = await call("PATCH", "/v1/passkeys/:id", { principal, id: passkey.id, body: { name: "Desk" } });
    const call2 = await call("DELETE", "/v1/passkeys/:id", { principal, id: passkey.id });
    expect([call1.status, call2.status]).toEqual([404, 404]);
  });

  test("refuses a command line's token for passkeys", async () => {
    const { principal } = await member("cli@example.com", null);
    for (const [method, path] of [
      ["GET", "/v1/passkeys"],
      ["POST", "/v1/passkeys/options"],
      ["POST", "/v1/passkeys"],
      ["PATCH", "/v1/passkeys/:id"],
      ["DELETE", "/v1/passkeys/:id"],
    ] as const) {
      expect((await call(method, path, { principal, body: {} })).status).toBe(403);
    }
  });

  test("refuses a malformed passkey body by the field's name", async () => {
    const { principal } = await member("shape@example.com");
    const wrong = await call("POST", "/v1/passkeys", { principal, body: { name: "x", response: { id: "a" } } });
    expect(wrong.status).toBe(400);
    expect(wrong.body.error.message).toStartWith("response.");
  });
});

describe("sign-in by passkey", () => {
  test("starts a new session by passkey and redirects onward", async () => {
    const { person, device } = await withPasskey("in@example.com");
    const done = await call("POST", "/sign-in/passkey", { body: await signInBody(device, { next: "/device?code=A" }) });
    expect(done).toMatchObject({ status: 200, body: { next: "/device?code=A" } });
    expect(done.headers.get("cache-control")).toBe("no-store");
    const current = await world.sessions.find(cookieHeader(done.headers.get("set-cookie") ?? ""), testOrigin);
    expect(current?.signedIn).toMatchObject({ person, session: { method: "passkey", accountId: world.accountId } });
  });

  test.each(["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"])(
    "never redirects a sign-in to %p",
    async (next) => {
      const { device } = await withPasskey(`next${next.length}${next.charCodeAt(1)}@example.com`);
      const done = await call("POST", "/sign-in/passkey", { body: await signInBody(device, { next }) });
      expect(done.body).toEqual({ next: "/" });
    },
  );

  test.each(["https://evil.example", "null", "http://localhost:7546", ""])(
    "refuses a sign-in from a page of %p before any other check",
    async (from) => {
      const headers = { origin: from };
      for (const path of ["/sign-in/passkey/options", "/sign-in/passkey"]) {
        expect(await call("POST", path, { headers, body: {} })).toMatchObject({ status: 403 });
      }
    },
  );

  test("delays sign-ins from a network after thirty failures, and not from another", async () => {
    const { device } = await withPasskey("bound@example.com");
    const [here, near, elsewhere] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
    const wrong = { ...(await signInBody(device)), challenge_id: "nobody-gave-it" };
    for (let i = 0; i < 30; i++) {
      expect((await call("POST", "/sign-in/passkey", { body: wrong, clientAddress: here })).status).toBe(400);
    }
    const refused = await call("POST", "/sign-in/passkey", { body: await signInBody(device), clientAddress: near });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    const other = await call("POST", "/sign-in/passkey", { body: await signInBody(device), clientAddress: elsewhere });
    expect(other.status).toBe(200);
    for (let i = 0; i < 120; i++) await call("POST", "/sign-in/passkey/options", { clientAddress: here });
    expect((await call("POST", "/sign-in/passkey/options", { clientAddress: here })).status).toBe(429);
  });
});

test("counts an unknown or invalid passkey as a failure", async () => {
  const { device } = await withPasskey("guessed@example.com");
  const stranger = new SoftwareAuthenticator(origin);
  stranger.passkeys.push(...device.passkeys.map((passkey) => ({ ...passkey, id: Buffer.alloc(32) })));
  const clientAddress = "198.51.100.77";
  for (let i = 0; i < 30; i++) {
    const body = await signInBody(stranger);
    expect((await call("POST", "/sign-in/passkey", { body, clientAddress })).status).toBe(403);
  }
  const body = await signInBody(device);
  expect((await call("POST", "/sign-in/passkey", { body, clientAddress })).status).toBe(429);
});

describe("the expected origin of passkeys", () => {
  const request = (host: string, headers = {}) => incoming({ target: "/", headers: { host, ...headers } });
  test.each([
    [request("evil.example"), "https://ai.example.com", "https://ai.example.com"],
    [request("localhost:7545"), undefined, "http://localhost:7545"],
    [request("127.0.0.1:7545"), undefined, "http://127.0.0.1:7545"],
    [request("evil.example"), undefined, undefined],
    [request("host.docker.internal:7545"), undefined, undefined],
    [request("localhost:7545", { "x-forwarded-for": "192.0.2.1" }), undefined, undefined],
  ])("uses the public URL's origin, or this machine's requested one (%#)", (req, publicUrl, expected) => {
    expect(pageOrigin(req, publicUrl, locality)).toBe(expected);
  });
});
