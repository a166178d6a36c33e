// API keys as a developer and an intruder use them over HTTP: the whole life of a key, where it works, what it shares, and every way to widen one.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { request as nodeRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CursorPage } from "openai/pagination";
import type { Environment } from "../../src/domain/api-key.ts";
import { openDatabase } from "../../src/storage/sql/database.ts";
import type { KeyWire } from "../../src/wire/keys.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, type TestServerOptions } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { mintKey, mintKeyRecord } from "../support/mint-key.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const everything = ["chat:read", "chat:write", "models:read", "usage:read", "keys:manage"] as const;
const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

let upstream: ScriptedUpstream;
let server: TestServer;
let clock: ManualClock;
/** Removed when nothing uses them any more. */
const directories: string[] = [];

beforeEach(async () => {
  upstream = await startUpstream();
  clock = manualClock(Math.floor(Date.now() / 1000));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

async function start({ yaml = "", flags = {}, ...options }: TestServerOptions = {}): Promise<void> {
  server = await startHeadrace({
    clock,
    flags: { mode: "production", publicUrl: "https://ai.example.com", ...flags },
    yaml: upstreamYaml(upstream, yaml),
    ...options,
  });
}

type Made = KeyWire & { key: string; replaces?: string };

interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: each test says what must be in it
  body: any;
}

async function call(
  method: string,
  path: string,
  { by = server.key, body, headers = {} }: { by?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const response = await server.request(path, {
    method,
    headers: { authorization: `Bearer ${by}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

async function make(body: Record<string, unknown> = {}, by?: string): Promise<Made> {
  const answer = await call("POST", "/v1/keys", { body: { name: "A key", ...body }, ...(by ? { by } : {}) });
  expect(answer).toMatchObject({ status: 200, body: { object: "api_key" } });
  return answer.body;
}

const show = async (id: string): Promise<KeyWire> => (await call("GET", `/v1/keys/${id}`)).body;

async function chatStatus(by: string, headers: Record<string, string> = {}): Promise<number> {
  return (await call("POST", "/v1/chat/completions", { by, headers, body: chat })).status;
}

async function tokenOf(key: string, more: Record<string, unknown> = {}): Promise<string> {
  const answer = await call("POST", "/v1/auth/token", { body: { api_key: key, ...more } });
  expect(answer.status).toBe(200);
  return answer.body.access_token;
}

describe("API keys over HTTP", () => {
  test("creates, uses, lists, shows, changes and revokes a key, with the documented answers", async () => {
    await start();
    const { key, ...record } = await make({ name: "Web shop", expires_in: 3600 });
    expect(record).toMatchObject({
      name: "Web shop",
      environment: "live",
      status: "active",
      scopes: ["chat:read", "chat:write", "models:read"],
      expires_at: clock.nowSeconds() + 3600,
      created_at: clock.nowSeconds(),
      last_used_at: null,
    });
    expect(await show(record.id)).toEqual({ ...record, quotas_used: [] } as never);
    expect(await chatStatus(key)).toBe(200);
    expect((await call("GET", "/v1/keys", { by: key })).body.error).toMatchObject({
      code: "insufficient_scope",
      message: "API key lacks required scope: keys:manage",
    });
    const changed = await call("PATCH", `/v1/keys/${record.id}`, { body: { scopes: ["models:read"], name: "Reader" } });
    expect(changed.body).toMatchObject({ scopes: ["models:read"], name: "Reader", expires_at: record.expires_at });
    expect(await chatStatus(key)).toBe(403);
    const revoked = await call("DELETE", `/v1/keys/${record.id}`);
    expect(revoked).toMatchObject({ status: 200, body: { status: "revoked", revoked_at: clock.nowSeconds() } });
    expect(await chatStatus(key)).toBe(401);
    expect((await call("DELETE", `/v1/keys/${record.id}`)).body).toEqual(revoked.body);
    const late = await call("PATCH", `/v1/keys/${record.id}`, { body: { name: "Back again" } });
    expect(late.body.error.message).toBe(
      "This key is revoked, which is final: it cannot be changed. Create a new key instead.",
    );
    expect((await call("GET", "/v1/keys")).body.data).toHaveLength(2);
  });

  test("lists 45 keys newest first, in pages and with the SDK's iterator", async () => {
    await start();
    const ids: string[] = [];
    for (let i = 0; i < 45; i++) ids.unshift((await make({ name: `Key ${i}` })).id);
    const first = (await call("GET", "/v1/keys")).body;
    expect(first.data).toHaveLength(20);
    expect(first).toMatchObject({ object: "list", first_id: ids[0], last_id: ids[19], has_more: true });
    const second = (await call("GET", `/v1/keys?after=${first.last_id}`)).body;
    const third = (await call("GET", `/v1/keys?after=${second.last_id}`)).body;
    expect(third).toMatchObject({ has_more: false });
    const seen = [first, second, third].flatMap(({ data }) => data.map(({ id }: KeyWire) => id));
    // The 46th is the first key.
    expect(seen.slice(0, 45)).toEqual(ids);
    expect(seen).toHaveLength(46);
    const beyond = (await call("GET", `/v1/keys?after=${third.last_id}`)).body;
    expect(beyond).toEqual({ object: "list", data: [], first_id: null, last_id: null, has_more: false });
    const walked: string[] = [];
    const pages = openaiClient(server).getAPIList("/keys", CursorPage, { query: { limit: 7 } });
    for await (const key of pages as AsyncIterable<KeyWire>) {
      walked.push(key.id);
      expect(key).not.toHaveProperty("key");
      // What is made while somebody pages neither repeats nor hides any.
      if (walked.length === 10) await make();
    }
    expect(walked).toEqual(seen);
    for (const limit of ["0", "101", "-1", "1.5", "ten", ""]) {
      const { status, body } = await call("GET", `/v1/keys?limit=${limit}`);
      expect({ limit, status }).toEqual({ limit, status: 400 });
      expect(body.error.message).toStartWith("limit: must be a whole number from 1 to 100");
    }
  });

  test("shows when a key was last used once the server has stored that time", async () => {
    await start();
    const { key, id } = await make();
    await chatStatus(key);
    const at = clock.nowSeconds();
    clock.advance(100_000);
    const dataDir = server.dataDir;
    await server.close();
    const db = await openDatabase(join(dataDir, "headrace.db"));
    const rows: { last_used_at: number }[] = await db`SELECT last_used_at FROM api_keys WHERE id = ${id}`;
    await db.close();
    expect(rows).toEqual([{ last_used_at: at }]);
  });

  test("expires a key to the second and permanently", async () => {
    await start();
    const { key, id } = await make({ expires_in: 10 });
    clock.advance(9_000);
    expect(await chatStatus(key)).toBe(200);
    clock.advance(1_000);
    expect(await chatStatus(key)).toBe(401);
    expect((await show(id)).status).toBe("expired");
    for (const body of [{ expires_at: null }, { expires_at: clock.nowSeconds() + 600 }]) {
      expect((await call("PATCH", `/v1/keys/${id}`, { body })).body.error.message).toContain("expired, which is final");
    }
    expect((await call("POST", `/v1/keys/${id}/rotate`, { body: {} })).status).toBe(400);
    const past = await call("POST", "/v1/keys", { body: { name: "x", expires_at: clock.nowSeconds() } });
    expect(past.body.error.message).toContain("expires_at: must be in the future");
    const both = await call("POST", "/v1/keys", {
      body: { name: "x", expires_at: clock.nowSeconds() + 9, expires_in: 9 },
    });
    expect(both.body.error.message).toContain("either expires_at or expires_in");
  });

  test("accepts both keys during a rotation's overlap and then only the new one, or at once without an overlap", async () => {
    await start();
    const old = await make({ name: "Worker", scopes: ["chat:write", "keys:manage"], allowed_ips: ["127.0.0.1"] });
    const next: Made = (await call("POST", `/v1/keys/${old.id}/rotate`, { body: { overlap_seconds: 100 } })).body;
    expect(next).toMatchObject({
      object: "api_key",
      name: "Worker",
      scopes: ["chat:write", "keys:manage"],
      allowed_ips: ["127.0.0.1"],
      replaces: old.id,
      status: "active",
    });
    expect(next.key).not.toBe(old.key);
    expect(await show(old.id)).toMatchObject({ status: "active", revoked_at: clock.nowSeconds() + 100 });
    expect([await chatStatus(old.key), await chatStatus(next.key)]).toEqual([200, 200]);
    const again = await call("POST", `/v1/keys/${old.id}/rotate`);
    expect(again).toMatchObject({ status: 400 });
    expect(again.body.error.message).toContain("rotate its successor");
    clock.advance(99_000);
    expect(await chatStatus(old.key)).toBe(200);
    clock.advance(1_000);
    expect([await chatStatus(old.key), await chatStatus(next.key)]).toEqual([401, 200]);
    expect((await show(old.id)).status).toBe("revoked");
    // It may rotate itself, with an empty body for a day's overlap.
    const third: Made = (await call("POST", `/v1/keys/${next.id}/rotate`, { by: next.key })).body;
    expect(await show(next.id)).toMatchObject({ status: "active", revoked_at: clock.nowSeconds() + 86_400 });
    const fourth: Made = (await call("POST", `/v1/keys/${third.id}/rotate`, { body: { overlap_seconds: 0 } })).body;
    expect([await chatStatus(third.key), await chatStatus(fourth.key)]).toEqual([401, 200]);
    for (const overlap of [-1, 2_592_001, 1.5, "10"]) {
      const answer = await call("POST", `/v1/keys/${fourth.id}/rotate`, { body: { overlap_seconds: overlap } });
      expect(answer.body.error.message).toStartWith("overlap_seconds: must be an integer from 0 to 2592000");
    }
  });

  test("revokes a rotated key at once within its overlap", async () => {
    await start();
    const old = await make();
    await call("POST", `/v1/keys/${old.id}/rotate`);
    const revoked = (await call("DELETE", `/v1/keys/${old.id}`)).body;
    expect(revoked).toMatchObject({ status: "revoked", revoked_at: clock.nowSeconds() });
    expect(await chatStatus(old.key)).toBe(401);
  });

  test("shows the usage of one key only to keys:manage", async () => {
    await start();
    const [one, two] = [await make(), await make()];
    await chatStatus(one.key);
    await chatStatus(one.key);
    await chatStatus(two.key);
    const { data } = (await call("GET", `/v1/keys/${one.id}/usage?group_by=key`)).body;
    expect(data).toMatchObject([
      { key: one.id, requests: 2, prompt_tokens: 14, completion_tokens: 4, total_tokens: 18 },
    ]);
    expect((await call("GET", `/v1/keys/${one.id}/usage`, { by: one.key })).status).toBe(403);
    expect((await call("GET", "/v1/keys/key_none/usage")).status).toBe(404);
  });
});

describe("allowed_ips", () => {
  const proxied = { yaml: "trusted_proxies: [127.0.0.0/8, '10.0.0.0/8', 'fd00::/8']\n" };
  const from = (...hops: string[]) => ({ "x-forwarded-for": hops.join(", ") });

  test("matches IPv4, IPv6 and ranges behind a trusted proxy, whatever notation the address has", async () => {
    await start(proxied);
    const { key, allowed_ips } = await make({
      allowed_ips: [
        "192.0.2.7",
        "198.51.100.77/24",
        "2001:DB8:0:0::1",
        "2001:db8:1::/48",
        "::ffff:203.0.113.5",
        "192.0.2.7",
      ],
    });
    expect(allowed_ips).toEqual(["192.0.2.7", "198.51.100.0/24", "2001:db8::1", "2001:db8:1::/48", "203.0.113.5"]);
    const statuses: Record<string, number> = {};
    const expected: Record<string, number> = {
      "192.0.2.7": 200,
      "::ffff:192.0.2.7": 200,
      "::ffff:c000:207": 200,
      "192.0.2.8": 401,
      "198.51.100.0": 200,
      "198.51.100.255": 200,
      "::ffff:198.51.100.9": 200,
      "198.51.101.0": 401,
      "2001:db8::1": 200,
      "2001:0db8:0000:0000:0000:0000:0000:0001": 200,
      "2001:db8::2": 401,
      "2001:db8:1:ffff::9": 200,
      "2001:db8:2::": 401,
      "203.0.113.5": 200,
      "::203.0.113.5": 401,
      "203.0.113.6": 401,
    };
    for (const address of Object.keys(expected)) statuses[address] = await chatStatus(key, from(address));
    expect(statuses).toEqual(expected);
    // The proxy itself, speaking for nobody, is not on the list.
    expect(await chatStatus(key)).toBe(401);
    const token = await tokenOfBehind(key, "192.0.2.7");
    expect(await chatStatus(token, from("192.0.2.7"))).toBe(200);
    expect(await chatStatus(token, from("192.0.2.8"))).toBe(401);
    const elsewhere = await call("POST", "/v1/auth/token", { body: { api_key: key }, headers: from("192.0.2.8") });
    expect(elsewhere.status).toBe(401);
  });

  async function tokenOfBehind(key: string, address: string): Promise<string> {
    return (await call("POST", "/v1/auth/token", { body: { api_key: key }, headers: from(address) })).body.access_token;
  }

  test("ignores forwarded addresses that the client wrote itself, and takes the proxy's last entry", async () => {
    await start(proxied);
    const { key } = await make({ allowed_ips: ["192.0.2.7"] });
    const refused: Record<string, string>[] = [
      from("192.0.2.7", "203.0.113.9"),
      from("192.0.2.7", "203.0.113.9", "10.1.2.3"),
      from("192.0.2.7", "unknown"),
      from("192.0.2.7", ""),
      from("192.0.2.7", "203.0.113.9", "fd00::1"),
      from("192.0.2.7", "203.0.113.9:4711"),
      { "x-real-ip": "192.0.2.7" },
      { forwarded: "for=192.0.2.7" },
      { "x-client-ip": "192.0.2.7", "true-client-ip": "192.0.2.7", "cf-connecting-ip": "192.0.2.7" },
      { forwarded: "for=192.0.2.7", ...from("203.0.113.9") },
    ];
    for (const headers of refused) {
      expect({ headers, status: await chatStatus(key, headers) }).toEqual({ headers, status: 401 });
    }
    expect(await chatStatus(key, from("203.0.113.9", "192.0.2.7"))).toBe(200);
    expect(await chatStatus(key, from("203.0.113.9", "192.0.2.7", "10.1.2.3", "fd00::1"))).toBe(200);
  });

  // hardening: K3
  test("does not take a client for an allowed proxy if that proxy does not forward its address", async () => {
    await start(proxied);
    const { key } = await make({ allowed_ips: ["127.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::/0"] });
    expect(await chatStatus(key)).toBe(200);
    for (const reported of ["unknown", "_hidden", "", "127.0.0.1:x", "203.0.113.9, nobody, 10.1.2.3"]) {
      expect({ reported, status: await chatStatus(key, from(reported)) }).toEqual({ reported, status: 401 });
    }
    expect(server.logged("request").some((line) => line["client"] === "unknown")).toBe(true);
  });

  test("reads a forwarded address that a proxy added as a separate header line", async () => {
    await start(proxied);
    const { key } = await make({ scopes: ["models:read"], allowed_ips: ["192.0.2.7"] });
    const status = (lines: string[]) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { authorization: `Bearer ${key}`, "x-forwarded-for": lines };
        const sent = nodeRequest(`${server.url}/v1/models`, { headers, agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on("error", reject).end();
      });
    expect(await status(["192.0.2.7", "203.0.113.9"])).toBe(401);
    expect(await status(["203.0.113.9", "192.0.2.7"])).toBe(200);
  });

  test("checks only the peer address without trusted proxies, IPv4-mapped or not", async () => {
    await start();
    const loopback = await make({ allowed_ips: ["127.0.0.0/8"] });
    const other = await make({ allowed_ips: ["192.0.2.7"] });
    expect(await chatStatus(loopback.key)).toBe(200);
    expect(await chatStatus(loopback.key, from("203.0.113.9"))).toBe(200);
    expect(await chatStatus(other.key, from("192.0.2.7"))).toBe(401);
    await server[Symbol.asyncDispose]();
    // A socket for both families shows IPv4 peers in IPv6 clothes.
    await start({ flags: { host: "::" } });
    const mapped = await make4({ allowed_ips: ["127.0.0.1"] });
    expect(await models4(mapped.key)).toBe(200);
    expect(await models4((await make4({ allowed_ips: ["::ffff:127.0.0.1"] })).key)).toBe(200);
    expect(await models4((await make4({ allowed_ips: ["::1"] })).key)).toBe(401);
  });

  const ipv4 = () => `http://127.0.0.1:${server.port}`;

  async function make4(body: Record<string, unknown>): Promise<Made> {
    const response = await fetch(`${ipv4()}/v1/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "Four", ...body }),
    });
    return (await response.json()) as Made;
  }

  async function models4(key: string): Promise<number> {
    return (await fetch(`${ipv4()}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
  }

  test.each([
    "192.0.2",
    "192.0.2.0/33",
    "192.0.2.256",
    "010.0.0.1",
    "fe80::1%eth0",
    "example.com",
    "2001:db8::/129",
    "*",
    "192.0.2.1-192.0.2.9",
    "192.0.2.0/255.255.255.0",
  ])("refuses %s in allowed_ips and says which notations are allowed", async (text) => {
    await start();
    const { status, body } = await call("POST", "/v1/keys", { body: { name: "x", allowed_ips: ["::1", text] } });
    expect(status).toBe(400);
    expect(body.error.message).toStartWith("allowed_ips[1]: must be an IPv4 or IPv6 address, or a range");
  });

  test("applies a change of allowed_ips to the next request, and logs the refused address", async () => {
    await start(proxied);
    const { id, key } = await make();
    expect(await chatStatus(key, from("203.0.113.9"))).toBe(200);
    await call("PATCH", `/v1/keys/${id}`, { body: { allowed_ips: ["192.0.2.0/24"] } });
    expect(await chatStatus(key, from("203.0.113.9"))).toBe(401);
    const [line] = server.logged("request").filter((entry) => entry["status"] === 401);
    expect(line).toMatchObject({ client: "203.0.113.9", detail: "address" });
    await call("PATCH", `/v1/keys/${id}`, { body: { allowed_ips: null } });
    expect(await chatStatus(key, from("203.0.113.9"))).toBe(200);
  });
});

describe("a key's own rate limit", () => {
  const times = async (count: number, key: string) => {
    const statuses: number[] = [];
    for (let i = 0; i < count; i++) statuses.push(await chatStatus(key));
    return statuses;
  };

  test("applies a key's own rate limit to that key alone, in its window, and a change at once", async () => {
    await start();
    const { id, key } = await make({ rate_limit: 2, rate_limit_window: 10 });
    const other = await make();
    expect(await times(3, key)).toEqual([200, 200, 429]);
    expect(await times(3, other.key)).toEqual([200, 200, 200]);
    clock.advance(5_000);
    expect(await times(2, key)).toEqual([200, 429]);
    const refused = await call("POST", "/v1/chat/completions", { by: key, body: chat });
    expect(refused.body.error.message).toBe(
      "The rate limit of the key is reached: 2 requests per 10 seconds. Retry in 5 seconds.",
    );
    await call("PATCH", `/v1/keys/${id}`, { body: { rate_limit: null } });
    expect(await show(id)).toMatchObject({ rate_limit: null, rate_limit_window: null });
    expect(await times(5, key)).toEqual([200, 200, 200, 200, 200]);
  });

  test("shares a key's own rate limit with all descendant keys", async () => {
    await start();
    const parent = await make({ scopes: everything, rate_limit: 4, rate_limit_window: 60 });
    const child = await make({ scopes: ["chat:write", "keys:manage"], rate_limit: 2 }, parent.key);
    const grandchild = await make({ scopes: ["chat:write"] }, child.key);
    expect(grandchild).toMatchObject({ rate_limit: null });
    expect(await times(3, grandchild.key)).toEqual([200, 200, 429]);
    expect(await times(1, child.key)).toEqual([429]);
    expect(await times(3, parent.key)).toEqual([200, 200, 429]);
    const sibling = await make({ scopes: ["chat:write"] }, parent.key);
    expect(await times(1, sibling.key)).toEqual([429]);
    expect(await times(1, server.key)).toEqual([200]);
    const token = await tokenOf(parent.key);
    expect(await times(1, token)).toEqual([429]);
  });

  test("counts the old and new key of a rotation against the same rate limit and quota", async () => {
    await start();
    const old = await make({ rate_limit: 3, rate_limit_window: 60, monthly_tokens: 45 });
    expect(await times(1, old.key)).toEqual([200]);
    const next: Made = (await call("POST", `/v1/keys/${old.id}/rotate`)).body;
    expect([await times(1, next.key), await times(1, old.key)]).toEqual([[200], [200]]);
    expect([await times(1, next.key), await times(1, old.key)]).toEqual([[429], [429]]);
    clock.advance(60_000);
    // 27 of 45 tokens are used; each takes 9.
    expect(await times(3, next.key)).toEqual([200, 200, 403]);
    expect(await times(1, old.key)).toEqual([403]);
  });

  // hardening: L1
  test("admits exactly the parent's limit of 500 concurrent requests by a parent key and three children", async () => {
    await start();
    const parent = await make({ scopes: everything, rate_limit: 50, rate_limit_window: 60 });
    const keys = [parent.key];
    for (let i = 0; i < 3; i++) keys.push((await make({ scopes: ["chat:write"], rate_limit: 40 }, parent.key)).key);
    const statuses = await Promise.all(Array.from({ length: 500 }, (_, i) => chatStatus(keys[i % 4] ?? "")));
    expect(statuses.filter((status) => status === 200)).toHaveLength(50);
    expect(upstream.requests).toHaveLength(50);
  });
});

describe("environments are separate", () => {
  const yaml = `models:
  - { id: for-live, environments: [live], deployments: [{ upstream: up, model: upstream-model }] }
  - { id: for-test, environments: [test], deployments: [{ upstream: up, model: upstream-model }] }
  - { id: for-both, environments: [live, test], deployments: [{ upstream: up, model: upstream-model }] }
  - { id: for-dev, environments: [dev], deployments: [{ upstream: up, model: upstream-model }] }
tiers: [{ name: enterprise, requests_per_minute: 2, tokens_per_minute: null, monthly_tokens: 29 }]
`;
  const keyFor = (environment: Environment) => mintKey(server.dataDir, { scopes: everything, environment });
  const use = async (by: string, model: string, more: Record<string, unknown> = {}) =>
    (await call("POST", "/v1/chat/completions", { by, body: { ...chat, model, ...more } })).status;

  test("offers models only in their environments", async () => {
    await start({ yaml });
    const testing = await keyFor("test");
    const ids = async (by: string) =>
      (await call("GET", "/v1/models", { by })).body.data.map(({ id }: { id: string }) => id).sort();
    expect(await ids(server.key)).toEqual(["for-both", "for-live", "upstream-model"]);
    expect(await ids(testing)).toEqual(["for-both", "for-test"]);
    expect(await use(testing, "for-live")).toBe(404);
    expect(await use(server.key, "for-test")).toBe(404);
    expect(await use(server.key, "for-dev")).toBe(404);
    expect((await call("GET", "/v1/models/for-live", { by: testing })).status).toBe(404);
    expect(upstream.requests).toHaveLength(0);
  });

  test("separates limits, quotas, usage, keys and stored chats by environment", async () => {
    await start({ yaml });
    const testing = await keyFor("test");
    const uses = async (by: string, count: number) => {
      const statuses: number[] = [];
      for (let i = 0; i < count; i++) statuses.push(await use(by, "for-both", { store: true, max_tokens: 2 }));
      return statuses;
    };
    expect(await uses(server.key, 3)).toEqual([200, 200, 429]);
    expect(await uses(testing, 2)).toEqual([200, 200]);
    clock.advance(60_000);
    expect(await uses(server.key, 2)).toEqual([200, 403]);
    expect(await uses(testing, 2)).toEqual([200, 403]);
    for (const [by, environment, requests] of [
      [server.key, "live", 3],
      [testing, "test", 3],
    ] as const) {
      const usage = (await call("GET", "/v1/usage?group_by=environment", { by })).body;
      expect(usage.data).toMatchObject([{ environment, requests, total_tokens: 9 * requests }]);
      const account = (await call("GET", "/v1/account", { by })).body;
      expect(account).toMatchObject({ environment, quota: { tokens: { limit: 29, used: 27 } } });
      const chats = (await call("GET", "/v1/chat/completions", { by })).body;
      expect(chats.data).toHaveLength(requests);
      const keys = (await call("GET", "/v1/keys", { by })).body;
      expect(keys.data.map((key: KeyWire) => key.environment)).toEqual([environment]);
    }
    const [chatOfTest] = (await call("GET", "/v1/chat/completions", { by: testing })).body.data;
    expect((await call("GET", `/v1/chat/completions/${chatOfTest.id}`)).status).toBe(404);
    expect((await call("DELETE", `/v1/chat/completions/${chatOfTest.id}`)).status).toBe(404);
  });

  test("creates keys only in the creator's environment", async () => {
    await start({ yaml });
    const testing = await keyFor("test");
    expect(await make({}, testing)).toMatchObject({ environment: "test", prefix: "sk_test_hr_" });
    const { status, body } = await call("POST", "/v1/keys", { by: testing, body: { name: "x", environment: "live" } });
    expect(status).toBe(400);
    expect(body.error.message).toStartWith("environment: is no member of this request");
    const live = await make();
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/rotate"],
      ["GET", "/usage"],
    ] as const) {
      const body = method === "PATCH" ? { name: "mine" } : undefined;
      const answer = await call(method, `/v1/keys/${live.id}${path}`, { by: testing, body });
      expect(answer).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
    }
    expect((await show(live.id)).status).toBe("active");
  });

  test("refuses development keys in production, and their older tokens", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "headrace-two-modes-"));
    directories.push(dataDir);
    await start({ dataDir, flags: { mode: "development" }, yaml });
    const development = server.key;
    expect(development).toStartWith("sk_dev_hr_");
    const token = await tokenOf(development);
    expect((await call("GET", "/v1/models", { by: token })).status).toBe(200);
    await server[Symbol.asyncDispose]();
    await start({ dataDir, yaml });
    expect(server.key).toStartWith("sk_live_hr_");
    for (const by of [development, token]) expect((await call("GET", "/v1/models", { by })).status).toBe(401);
  });
});

describe("a key cannot create or become more than it is", () => {
  const past = () => clock.nowSeconds() - 10;
  let soon: number;
  let small: Made;

  async function bounded(): Promise<void> {
    await start({ yaml: "trusted_proxies: [127.0.0.1]\n" });
    soon = clock.nowSeconds() + 1000;
    small = await make({
      scopes: ["keys:manage", "chat:write"],
      expires_at: soon,
      allowed_ips: ["127.0.0.1", "192.0.2.0/24", "2001:db8::/32"],
      rate_limit: 10,
      rate_limit_window: 60,
      monthly_tokens: 1000,
      monthly_spend: 5,
    });
  }

  const wider: [field: string, values: Record<string, unknown>, message: RegExp][] = [
    ["scopes", { scopes: ["models:read"] }, /lacks required scope: models:read/],
    ["scopes", { scopes: ["chat:write", "admin:manage"] }, /lacks required scope: admin:manage/],
    [
      "allowed_ips",
      { allowed_ips: ["192.0.3.1"] },
      /allowed_ips\[0\]: must be within 127\.0\.0\.1, 192\.0\.2\.0\/24, 2001:db8::\/32/,
    ],
    ["allowed_ips", { allowed_ips: ["192.0.2.1", "0.0.0.0/0"] }, /allowed_ips\[1\]/],
    ["allowed_ips", { allowed_ips: ["192.0.0.0/16"] }, /allowed_ips\[0\]/],
    ["allowed_ips", { allowed_ips: ["::/0"] }, /allowed_ips\[0\]/],
    ["allowed_ips", { allowed_ips: ["::ffff:0:0/96"] }, /allowed_ips\[0\]/],
    ["allowed_ips", { allowed_ips: ["::ffff:192.0.3.1"] }, /allowed_ips\[0\]/],
    ["rate_limit", { rate_limit: 11 }, /rate_limit: must be at most 10 and no more than 10 per 60 seconds/],
    ["rate_limit", { rate_limit: 10, rate_limit_window: 59 }, /rate_limit: must be at most 10/],
    ["rate_limit", { rate_limit: 1, rate_limit_window: 1 }, /rate_limit: must be at most 10/],
    ["monthly_tokens", { monthly_tokens: 1001 }, /monthly_tokens: must be at most 1000/],
    ["monthly_spend", { monthly_spend: 5.000_001 }, /monthly_spend: must be at most 5/],
  ];

  // hardening: K6
  test("refuses a new key with any wider value by name, and accepts equal and narrower values", async () => {
    await bounded();
    const late: typeof wider = [
      ["expires_at", { expires_at: soon + 1 }, new RegExp(`expires_at: must be at most ${soon}`)],
      ["expires_at", { expires_in: 1001 }, new RegExp(`expires_at: must be at most ${soon}`)],
    ];
    for (const [field, values, message] of [...wider, ...late]) {
      const { status, body } = await call("POST", "/v1/keys", {
        by: small.key,
        body: { name: "wide", scopes: ["chat:write"], ...values },
      });
      expect({ field, values, status }).toEqual({ field, values, status: 403 });
      expect(body.error.message).toMatch(message);
    }
    const equal = { expires_at: soon, rate_limit: 10, rate_limit_window: 60, monthly_tokens: 1000, monthly_spend: 5 };
    expect(
      await make(
        { scopes: ["chat:write", "keys:manage"], allowed_ips: ["192.0.2.128/25", "2001:db8:1::1"], ...equal },
        small.key,
      ),
    ).toMatchObject(equal);
    const least = await make({ allowed_ips: [] }, small.key);
    expect(least).toMatchObject({
      scopes: ["chat:write"],
      expires_at: soon,
      allowed_ips: small.allowed_ips,
      created_by: small.id,
    });
  });

  // hardening: K6
  test("refuses to widen or unbind a key itself or its children", async () => {
    await bounded();
    const child = await make({ scopes: ["chat:write"], rate_limit: 1 }, small.key);
    const late: typeof wider = [
      ["expires_at", { expires_at: soon + 1 }, /expires_at: must be at most/],
      ["expires_at", { expires_at: null }, /expires_at: must be at most/],
      ["allowed_ips", { allowed_ips: [] }, /allowed_ips: must be within/],
      ["allowed_ips", { allowed_ips: null }, /allowed_ips: must be within/],
    ];
    for (const id of [child.id, small.id]) {
      for (const [field, values, message] of [...wider, ...late]) {
        const { status, body } = await call("PATCH", `/v1/keys/${id}`, { by: small.key, body: values });
        expect({ field, values, status }).toEqual({ field, values, status: 403 });
        expect(body.error.message).toMatch(message);
      }
    }
    for (const values of [{ rate_limit: null }, { monthly_tokens: null }, { monthly_spend: null }]) {
      expect((await call("PATCH", `/v1/keys/${small.id}`, { by: small.key, body: values })).status).toBe(403);
      // Its maker's holds for it anyway.
      expect((await call("PATCH", `/v1/keys/${child.id}`, { by: small.key, body: values })).status).toBe(200);
    }
    const { scopes, allowed_ips, rate_limit, rate_limit_window, monthly_tokens, monthly_spend, expires_at } = small;
    const before = { scopes, allowed_ips, rate_limit, rate_limit_window, monthly_tokens, monthly_spend, expires_at };
    expect(await show(small.id)).toMatchObject(before);
  });

  test("lets a key narrow itself, and only its creator widen it again", async () => {
    await start();
    const { id, key } = await make({ scopes: ["keys:manage", "chat:write"], monthly_tokens: 100 });
    const self = (body: Record<string, unknown>) => call("PATCH", `/v1/keys/${id}`, { by: key, body });
    expect((await self({ scopes: ["keys:manage"], name: "Less" })).body).toMatchObject({
      scopes: ["keys:manage"],
      name: "Less",
    });
    expect((await self({ scopes: ["keys:manage", "chat:write"] })).body.error.code).toBe("insufficient_scope");
    expect((await self({ monthly_tokens: 50 })).status).toBe(200);
    expect((await self({ monthly_tokens: 51 })).status).toBe(403);
    const maker = await call("PATCH", `/v1/keys/${id}`, {
      body: { scopes: ["keys:manage", "chat:write"], monthly_tokens: 200 },
    });
    expect(maker.body).toMatchObject({ scopes: ["keys:manage", "chat:write"], monthly_tokens: 200 });
    expect((await self({ scopes: ["chat:write"] })).status).toBe(200);
    expect((await self({ name: "Locked out" })).body.error.message).toBe("API key lacks required scope: keys:manage");
  });

  test("refuses unknown fields of a key such as account, parent or status, and changes nothing", async () => {
    await start();
    const { id } = await make();
    const before = await show(id);
    for (const body of [
      { environment: "test" },
      { account_id: "acct_2" },
      { parent_id: null },
      { created_by: null },
      { status: "active" },
      { revoked_at: null },
      { key: "sk_live_x" },
      { id: "key_x" },
      { limit_id: "x" },
      { expires_in: 5 },
      { __proto__x: 1 },
    ]) {
      const [name = ""] = Object.keys(body);
      for (const [method, path] of [
        ["POST", "/v1/keys"],
        ["PATCH", `/v1/keys/${id}`],
      ] as const) {
        if (method === "POST" && name === "expires_in") continue;
        const answer = await call(method, path, { body: method === "POST" ? { name: "x", ...body } : body });
        expect({ name, status: answer.status }).toEqual({ name, status: 400 });
        expect(answer.body.error.message).toStartWith(`${name}: is no member of this request; known are name`);
      }
    }
    expect(await show(id)).toEqual(before);
  });

  // hardening: K6
  test("narrows grandchildren with the parent key, whatever their own records say", async () => {
    await start({ yaml: "trusted_proxies: [127.0.0.1]\n" });
    const parent = await make({ scopes: ["keys:manage", "chat:write", "models:read"] });
    const child = await make({ scopes: ["keys:manage", "chat:write", "models:read"] }, parent.key);
    const grandchild = await make({ scopes: ["chat:write", "models:read", "keys:manage"] }, child.key);
    const narrow = (body: Record<string, unknown>) => call("PATCH", `/v1/keys/${parent.id}`, { body });
    await narrow({ scopes: ["keys:manage", "models:read"] });
    for (const by of [parent.key, child.key, grandchild.key]) expect(await chatStatus(by)).toBe(403);
    const wide = await call("POST", "/v1/keys", { by: grandchild.key, body: { name: "x", scopes: ["chat:write"] } });
    expect(wide.body.error.code).toBe("insufficient_scope");
    expect(await make({}, grandchild.key)).toMatchObject({ scopes: ["models:read"] });
    await narrow({ allowed_ips: ["192.0.2.7"] });
    const models = async (by: string, address: string) =>
      (await call("GET", "/v1/models", { by, headers: { "x-forwarded-for": address } })).status;
    expect(await models(grandchild.key, "192.0.2.7")).toBe(200);
    expect(await models(grandchild.key, "192.0.2.8")).toBe(401);
    const inherits = await call("POST", "/v1/keys", {
      by: grandchild.key,
      headers: { "x-forwarded-for": "192.0.2.7" },
      body: { name: "x" },
    });
    expect(inherits.body).toMatchObject({ allowed_ips: ["192.0.2.7"] });
    await narrow({ allowed_ips: null, expires_at: clock.nowSeconds() + 50 });
    const later = await call("POST", "/v1/keys", { by: grandchild.key, body: { name: "x", expires_in: 51 } });
    expect(later.status).toBe(403);
    expect(await models(grandchild.key, "192.0.2.8")).toBe(200);
    clock.advance(50_000);
    for (const by of [parent.key, child.key, grandchild.key]) expect(await models(by, "192.0.2.8")).toBe(401);
    expect((await show(grandchild.id)).status).toBe("expired");
  });

  test("revokes all descendants of a key, also a child that was rotated meanwhile", async () => {
    await start();
    const parent = await make({ scopes: everything });
    const child = await make({ scopes: everything }, parent.key);
    const fled: Made = (await call("POST", `/v1/keys/${child.id}/rotate`, { by: child.key })).body;
    const grandchild = await make({ scopes: everything }, fled.key);
    const token = await tokenOf(grandchild.key);
    await call("DELETE", `/v1/keys/${parent.id}`);
    for (const by of [parent.key, child.key, fled.key, grandchild.key, token]) {
      expect((await call("GET", "/v1/keys", { by })).status).toBe(401);
    }
    for (const { id } of [child, fled, grandchild]) expect((await show(id)).status).toBe("revoked");
  });

  test("does not let a key change its ancestors or a wider key", async () => {
    await start();
    const parent = await make({ scopes: everything, rate_limit: 100 });
    const child = await make({ scopes: everything, expires_in: 500 }, parent.key);
    const stranger = await make({ scopes: everything });
    const acts: [string, string, unknown][] = [
      ["PATCH", "", { name: "Mine" }],
      ["DELETE", "", undefined],
      ["POST", "/rotate", {}],
    ];
    for (const target of [parent, stranger]) {
      for (const [method, path, body] of acts) {
        const answer = await call(method, `/v1/keys/${target.id}${path}`, { by: child.key, body });
        expect(answer).toMatchObject({
          status: 403,
          body: { error: { code: "permission_denied", type: "permission_error" } },
        });
      }
      expect(await show(target.id)).toMatchObject({ name: "A key", status: "active", revoked_at: null });
    }
    const [first] = (await call("GET", "/v1/keys?limit=100")).body.data.slice(-1);
    expect((await call("DELETE", `/v1/keys/${first.id}`, { by: child.key })).status).toBe(403);
  });

  // hardening: K6
  test("does not let a rotated key use its overlap to create, keep or take longer access", async () => {
    await start();
    const old = await make({ scopes: everything });
    const next: Made = (await call("POST", `/v1/keys/${old.id}/rotate`, { body: { overlap_seconds: 100 } })).body;
    const made = await make({ scopes: everything }, old.key);
    expect(made.expires_at).toBe(clock.nowSeconds() + 100);
    expect((await call("POST", "/v1/keys", { by: old.key, body: { name: "x", expires_in: 101 } })).status).toBe(403);
    for (const [method, path, body] of [
      ["DELETE", "", undefined],
      ["PATCH", "", { scopes: ["chat:write"] }],
      ["POST", "/rotate", {}],
    ] as const) {
      expect((await call(method, `/v1/keys/${next.id}${path}`, { by: old.key, body })).status).toBe(403);
    }
    const token = await call("POST", "/v1/auth/token", { body: { api_key: old.key } });
    expect(token.body.expires_in).toBe(100);
    // Not even its own end can be put off.
    expect((await call("PATCH", `/v1/keys/${old.id}`, { by: old.key, body: { revoked_at: null } })).status).toBe(400);
    clock.advance(100_000);
    for (const by of [old.key, made.key, token.body.access_token])
      expect((await call("GET", "/v1/keys", { by })).status).toBe(401);
    expect((await call("GET", "/v1/keys", { by: next.key })).status).toBe(200);
  });

  // hardening: K6
  test("does not let a token create keys that outlive it or exceed its scopes", async () => {
    await start();
    const parent = await make({ scopes: everything });
    const token = await tokenOf(parent.key, { expires_in: 600, scope: "keys:manage models:read" });
    const end = clock.nowSeconds() + 600;
    expect(await make({}, token)).toMatchObject({ expires_at: end, scopes: ["models:read"], created_by: parent.id });
    for (const body of [
      { expires_in: 601 },
      { expires_at: end + 1 },
      { scopes: ["chat:write"] },
      { scopes: ["usage:read"] },
    ]) {
      expect((await call("POST", "/v1/keys", { by: token, body: { name: "x", ...body } })).status).toBe(403);
    }
    const made = await make({}, token);
    expect((await call("PATCH", `/v1/keys/${made.id}`, { by: token, body: { expires_at: null } })).status).toBe(403);
    expect((await call("PATCH", `/v1/keys/${made.id}`, { by: token, body: { expires_at: end + 60 } })).status).toBe(
      403,
    );
    // Its own key has more scopes than it, and lasts longer.
    for (const [method, path, body] of [
      ["PATCH", "", { name: "Mine" }],
      ["PATCH", "", { scopes: ["keys:manage"] }],
      ["POST", "/rotate", {}],
    ] as const) {
      const answer = await call(method, `/v1/keys/${parent.id}${path}`, { by: token, body });
      expect({ method, path, status: answer.status }).toEqual({ method, path, status: 403 });
    }
    const full = await tokenOf(parent.key, { expires_in: 600 });
    expect((await call("POST", `/v1/keys/${parent.id}/rotate`, { by: full, body: {} })).body.error.message).toContain(
      "cannot rotate a key that outlives it",
    );
    const scopeless = await tokenOf(parent.key, { scope: "chat:write" });
    expect((await call("POST", "/v1/keys", { by: scopeless, body: { name: "x" } })).body.error.message).toBe(
      "API key lacks required scope: keys:manage",
    );
    clock.advance(600_000);
    expect((await call("GET", "/v1/models", { by: made.key })).status).toBe(401);
    expect((await call("GET", "/v1/models", { by: parent.key })).status).toBe(200);
  });

  test("does not let a token extend a child key's life by rotating it", async () => {
    await start();
    const parent = await make({ scopes: everything });
    const token = await tokenOf(parent.key, { expires_in: 60 });
    const made = await make({ scopes: ["keys:manage", "models:read"] }, token);
    const end = made.expires_at;
    const next: Made = (await call("POST", `/v1/keys/${made.id}/rotate`, { by: made.key })).body;
    expect(next.expires_at).toBe(end);
    const other = await tokenOf(made.key);
    expect((await call("POST", "/v1/keys", { by: other, body: { name: "x" } })).body.expires_at).toBe(end);
    clock.advance(60_000);
    for (const by of [next.key, other]) expect((await call("GET", "/v1/models", { by })).status).toBe(401);
  });

  test("hides other accounts from a key and refuses changes there", async () => {
    await start();
    const [theirs, mine] = [await otherAccountsKey(), await make()];
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["GET", "/usage", undefined],
      ["PATCH", "", { name: "Mine" }],
      ["DELETE", "", undefined],
      ["POST", "/rotate", {}],
    ] as const) {
      const answer = await call(method, `/v1/keys/${mine.id}${path}`, { by: theirs, body });
      expect(answer).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
    }
    await chatStatus(mine.key);
    expect((await call("GET", "/v1/keys", { by: theirs })).body.data).toHaveLength(1);
    expect((await call("GET", "/v1/usage", { by: theirs })).body.data).toEqual([]);
    // A key of another account is no place in this list.
    expect(await call("GET", `/v1/keys?after=${mine.id}`, { by: theirs })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringMatching(/^after: /) } },
    });
  });

  async function otherAccountsKey(): Promise<string> {
    const db = await openDatabase(`${server.dataDir}/headrace.db`);
    await db`INSERT INTO accounts (id, name, tier, created_at) VALUES ('acct_2', 'Other', 'free', ${past()})`;
    await db.close();
    const { key } = await mintKeyRecord(server.dataDir, {
      scopes: everything,
      environment: "live",
      accountId: "acct_2",
      name: "Theirs",
    });
    return key;
  }
});
