// What needs no credential is limited by address: every such route, in the form in which it answers errors.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateApiKey } from "../../src/domain/api-key.ts";
import type { Route } from "../../src/http/exchange/route.ts";
import { createRoutes } from "../../src/http/routes.ts";
import { addressLimits } from "../../src/policy/address-throttle.ts";
import { addKey } from "../hostile/keys.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

/** The table describes itself; its handlers, and so what they need, are never reached by building it. */
const routes = createRoutes(new Proxy({}, { get: () => undefined }) as Parameters<typeof createRoutes>[0]);
const limit = 4;
const few = Object.fromEntries(Object.keys(addressLimits).map((name) => [name, limit]));
/** The gateway believes its proxy, which is this test, where a request comes from. */
const behindProxy = { flags: { trustedProxies: "127.0.0.1" } };

type Open = Extract<Route, { access: "public" | "page" | "machine" }>;
const isOpen = (route: Route): route is Open => "throttle" in route;
const open = routes.filter(isOpen);
const named = (some: readonly Open[]) => some.map((route) => ({ name: `${route.method} ${route.path}`, route }));
const isOAuth = ({ path }: Route) => path.startsWith("/oauth/") && path !== "/oauth/authorize";

let server: TestServer;
let clock: ManualClock;
let statements = 0;
let networks = 0;

beforeAll(async () => {
  clock = manualClock();
  server = await startHeadrace({
    ...{ clock, addressLimits: few, onDatabaseUse: () => statements++ },
    ...behindProxy,
  });
});

afterAll(() => server[Symbol.asyncDispose]());

const someAddress = () => `198.51.${networks >> 8}.${networks++ & 255}`;

function send(route: Pick<Open, "method" | "path">, address: string): Promise<Response> {
  return fetch(server.url + route.path.replace("*", "x").replace(/:\w+/g, "x"), {
    method: route.method,
    headers: { "x-forwarded-for": address, ...(route.method === "POST" ? { "content-type": "application/json" } : {}) },
    redirect: "manual",
    ...(route.method === "POST" ? { body: "{}" } : {}),
  });
}

/** A refusal, and the fewest statements that one of three took: the server's own watch over revisions runs beside them. */
async function leastOf(refuse: () => Promise<Response>): Promise<{ refused: Response; statements: number }> {
  const counts: number[] = [];
  let refused = new Response();
  for (let i = 0; i < 3; i++) {
    const before = statements;
    refused = await refuse();
    counts.push(statements - before);
  }
  return { refused, statements: Math.min(...counts) };
}

// hardening: L6
test("names the limit of each unauthenticated route, except one that another replica signs", () => {
  for (const route of routes) {
    const isOpenToAll = ["public", "page", "machine"].includes(route.access);
    expect([route.path, "throttle" in route]).toEqual([route.path, isOpenToAll]);
  }
  expect(open.length).toBeGreaterThan(50);
  for (const { throttle } of open) expect([...Object.keys(addressLimits), "signed"]).toContain(throttle);
  expect(open.filter(({ throttle }) => throttle === "signed").map(({ path }) => path)).toEqual([
    "/internal/nodes/:id/requests",
  ]);
});

describe.each(named(open.filter(({ throttle }) => throttle !== "signed")))("$name", ({ route }) => {
  // hardening: L6
  test("answers an open endpoint up to its limit, then 429 in its format, without reading the database", async () => {
    const address = someAddress();
    for (let i = 0; i < limit; i++) expect((await send(route, address)).status).not.toBe(429);
    const { refused, statements } = await leastOf(() => send(route, address));
    expect(refused.status).toBe(429);
    expect(statements).toBe(0);
    expect(Number(refused.headers.get("retry-after"))).toBe(60 / limit);
    const text = await refused.text();
    if (route.access === "page") {
      expect(refused.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(text).toContain("Too many tries");
    } else if (isOAuth(route)) {
      expect(JSON.parse(text)).toMatchObject({ error: "temporarily_unavailable" });
      expect(refused.headers.get("cache-control")).toBe("no-store");
    } else {
      expect(JSON.parse(text)).toMatchObject({ error: { code: "rate_limit_exceeded", type: "rate_limit_error" } });
    }
    expect((await send(route, someAddress())).status).not.toBe(429);
  });
});

// hardening: L6
test("refuses an unsigned request between replicas without reading the database", async () => {
  const address = someAddress();
  const signed = { method: "POST", path: "/internal/nodes/:id/requests" } as const;
  const { refused, statements } = await leastOf(() => send(signed, address));
  expect(refused.status).toBe(403);
  expect(statements).toBe(0);
});

describe("unknown keys", () => {
  const ask = (key: string, address: string) =>
    fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${key}`, "x-forwarded-for": address } });
  const tooMany = async (address: string) => {
    for (let i = 0; i < limit; i++) expect((await ask(generateApiKey("live"), address)).status).toBe(401);
  };

  // hardening: L6
  test("looks up unknown keys per address up to a limit, then answers 429 with a retry time", async () => {
    const address = someAddress();
    await tooMany(address);
    const refused = await ask(generateApiKey("live"), address);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, String(60 / limit)]);
    expect((await refused.json()).error.message).toBe(
      `Too many API keys and sessions that are nobody's came from your network. Retry in ${60 / limit} s.`,
    );
    expect((await ask(generateApiKey("live"), someAddress())).status).toBe(401);
    clock.advance((60 / limit) * 1_000);
    expect((await ask(generateApiKey("live"), address)).status).toBe(401);
  });

  // hardening: L6
  test("locks out no valid key of an address with unknown keys, even after the cache is cleared", async () => {
    const address = someAddress();
    const good = await addKey(server, { scopes: ["models:read"], environment: "live" });
    expect((await ask(good, address)).status).toBe(200);
    await tooMany(address);
    expect((await ask(generateApiKey("live"), address)).status).toBe(429);
    expect((await ask(good, address)).status).toBe(200);
    // Another process changed something.
    server.governance.authenticator.invalidate();
    expect((await ask(good, address)).status).toBe(200);
  });

  // hardening: L6
  test("locks out no valid key that a restarted process has not seen yet", async () => {
    const address = someAddress();
    const good = await addKey(server, { scopes: ["models:read"], environment: "live" });
    await tooMany(address);
    expect((await ask(generateApiKey("live"), address)).status).toBe(429);
    expect((await ask(good, address)).status).toBe(200);
  });

  test("counts and looks up no malformed keys", async () => {
    const address = someAddress();
    for (let i = 0; i < 3 * limit; i++) {
      const { refused, statements: looked } = await leastOf(() => ask("sk_live_hr_made-up", address));
      expect([refused.status, looked]).toEqual([401, 0]);
    }
  });

  // hardening: L6
  test("applies the lookup limit to unknown keys in the body of a token request", async () => {
    const address = someAddress();
    const exchange = (api_key: string) =>
      fetch(`${server.url}/v1/auth/token`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-forwarded-for": address },
        body: JSON.stringify({ api_key }),
      });
    await tooMany(address);
    expect((await exchange(generateApiKey("live"))).status).toBe(429);
  });
});

describe("unknown session cookies", () => {
  const cookie = () =>
    `headrace_session=${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url")}`;
  const ask = (path: string, address: string) =>
    fetch(server.url + path, { headers: { cookie: cookie(), "x-forwarded-for": address }, redirect: "manual" });

  // hardening: L6
  test("looks up unknown session cookies up to one limit for API and pages together", async () => {
    const address = someAddress();
    for (let i = 0; i < limit / 2; i++) {
      expect((await ask("/v1/session", address)).status).toBe(401);
      expect((await ask("/settings", address)).status).toBe(303);
    }
    expect((await ask("/v1/session", address)).status).toBe(429);
    expect((await ask("/settings", address)).status).toBe(429);
  });
});

// hardening: L6
test("gives an untrusted client no new limit by X-Forwarded-For", async () => {
  await using direct = await startHeadrace({ addressLimits: few, clock });
  const statuses = [];
  for (let i = 0; i <= limit; i++) {
    statuses.push((await fetch(`${direct.url}/docs/api`, { headers: { "x-forwarded-for": someAddress() } })).status);
  }
  expect(statuses).toEqual([...Array(limit).fill(200), 429]);
});

// hardening: L6
test("applies no limit for unknown credentials to a client with a key", async () => {
  await using direct = await startHeadrace({ addressLimits: few, clock });
  for (let i = 0; i < 5 * limit; i++) expect((await direct.request("/v1/models")).status).toBe(200);
});

// hardening: L6
test("answers any number of monitors within the usual limits", async () => {
  await using usual = await startHeadrace({ clock });
  await until(async () => (await fetch(`${usual.url}/readyz`)).ok, "ready");
  const statuses = await Promise.all(
    Array.from({ length: 500 }, async (_, i) => (await fetch(usual.url + (i % 2 ? "/readyz" : "/healthz"))).status),
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
});
