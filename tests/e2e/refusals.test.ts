// What limits refuse on a running server: counted by reason, shown to its account alone, kept over a restart.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { mintKey, mintKeyRecord } from "../support/mint-key.ts";
import { chatScript, json, type Script, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function start(script: Script, { yaml = "", ...options }: TestServerOptions = {}): Promise<TestServer> {
  const upstream = await startUpstream(script);
  stack.push(upstream);
  const server = await startHeadrace({ yaml: upstreamYaml(upstream, yaml), ...options });
  stack.push(server);
  return server;
}

const messages = [{ role: "user", content: "Hi" }];

async function chat(server: TestServer, key = server.key, body: object = {}): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages, ...body },
    headers,
  });
  await response.text();
  return response.status;
}

interface Row {
  key: string;
  model: string;
  reason: string;
  requests: number;
  start: number;
  last_at: number;
}

async function refusals(server: TestServer, key = server.key, query = ""): Promise<Row[]> {
  const response = await server.request(`/v1/refusals${query}`, { headers: { authorization: `Bearer ${key}` } });
  expect(response.status).toBe(200);
  return (await response.json()).data;
}

const reasonsOf = (rows: readonly Row[]) => Object.fromEntries(rows.map(({ reason, requests }) => [reason, requests]));

test("counts each refusing limit under its own reason and account, at once and after a restart", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-refusals-"));
  const tier =
    "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: 1000, environments: [dev] }]\n";
  const server = await start(chatScript(), { dataDir, yaml: tier });
  const scopes = ["chat:write", "usage:read"] as const;
  const slow = await mintKeyRecord(dataDir, { scopes, rateLimit: 1, rateLimitWindow: 3600 });
  const poor = await mintKey(dataDir, { scopes, monthlyTokens: 1 });
  expect(await chat(server, slow.key)).toBe(200);
  for (let i = 0; i < 5; i++) expect(await chat(server, slow.key)).toBe(429);
  expect(await chat(server, poor)).toBe(403);
  expect(await chat(server, server.key, { max_tokens: 100_000 })).toBe(429);
  expect(await chat(server, server.key, { model: "nope" })).toBe(404);

  const before = Math.floor(Date.now() / 1000);
  const rows = await refusals(server);
  expect(reasonsOf(rows)).toEqual({ key_requests: 5, key_quota: 1, account_tokens: 1 });
  const row = rows.find(({ reason }) => reason === "key_requests");
  expect(row).toMatchObject({ object: "refusal", key: slow.record.id, app: null, model: "upstream-model" });
  expect(row?.start).toBe((row?.last_at ?? 0) - ((row?.last_at ?? 0) % 3600));
  expect(Math.abs((row?.last_at ?? 0) - before)).toBeLessThan(30);
  // Refused is not used.
  const usage = await (await server.request("/v1/usage")).json();
  expect(usage.data[0].requests).toBe(1);

  expect(await refusals(server, await mintKey(dataDir, { scopes, environment: "test" }))).toEqual([]);
  expect(await refusals(server, server.key, `?end=${(row?.start ?? 0) - 3600}`)).toEqual([]);
  await chat(server, slow.key);
  await server.close();
  const again = await startHeadrace({ dataDir });
  stack.push(again);
  expect(reasonsOf(await refusals(again, slow.key))).toEqual({ key_requests: 6, key_quota: 1, account_tokens: 1 });
  rmSync(dataDir, { recursive: true, force: true });
});

test("counts a request refused for lack of a slot, without sending it", async () => {
  const held = Promise.withResolvers<void>();
  const upstream = await startUpstream(async (request, res) => {
    await held.promise;
    await chatScript()(request, res);
  });
  stack.push(upstream);
  const one = `upstreams: [{ name: up, url: "${upstream.url}", max_concurrency: 1 }]\nlimits: { queue: 0 }\n`;
  const server = await startHeadrace({ yaml: one });
  stack.push(server);
  const first = chat(server);
  await until(() => upstream.requests.length === 1, "a request that runs");
  expect(await chat(server, server.key, { stream: true })).toBe(503);
  expect(reasonsOf(await refusals(server))).toEqual({ capacity: 1 });
  held.resolve();
  expect(await first).toBe(200);
  expect(upstream.requests).toHaveLength(1);
});

test("counts a refusal for a model server without capacity, and none for a failing one", async () => {
  let status = 503;
  const server = await start((_request, res) => json(res, status, {}, { "retry-after": "1" }));
  expect(await chat(server)).toBe(503);
  status = 500;
  expect(await chat(server)).toBe(502);
  expect(reasonsOf(await refusals(server))).toEqual({ capacity: 1 });
});

test("keeps refusal counts waiting while another program locks the database, and still refuses requests", async () => {
  const server = await start(chatScript());
  const key = await mintKey(server.dataDir, { scopes: ["chat:write"], rateLimit: 1, rateLimitWindow: 3600 });
  expect(await chat(server, key)).toBe(200);
  const other = new SQL({ adapter: "sqlite", filename: join(server.dataDir, "headrace.db") });
  stack.push({ [Symbol.asyncDispose]: () => other.close() });
  const unlock = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const lock = other.begin("IMMEDIATE", async () => {
    locked.resolve();
    await unlock.promise;
  });
  await locked.promise;
  for (let i = 0; i < 20; i++) expect(await chat(server, key)).toBe(429);
  // Reading goes on: it shows what was written before.
  expect(await refusals(server)).toEqual([]);
  expect(server.logged("refusals_not_written")).toHaveLength(1);
  unlock.resolve();
  await lock;
  expect(reasonsOf(await refusals(server))).toEqual({ key_requests: 20 });
});

test("refuses an invalid time range with its fix", async () => {
  const server = await start(chatScript());
  const message = async (query: string) => {
    const response = await server.request(`/v1/refusals?${query}`);
    expect(response.status).toBe(400);
    return (await response.json()).error.message;
  };
  expect(await message("start=2026-09-02&end=2026-09-01")).toStartWith("start: must be before end (got 2026-09-02");
  expect(await message("start=2024-01-01&end=2026-01-01")).toStartWith("start: must be at most 366 days before end");
  expect(await message("start=soon")).toStartWith("start: must be Unix seconds or an ISO 8601 date");
  expect(await message("group_by=key")).toBe("group_by: is no parameter of this endpoint; known are start, end.");
});
