// Answers that are kept where there are replicas: in Redis for all of them, sealed there, or in the memory of each; forgotten everywhere, and missed by nobody.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../fixtures/command-line.ts";
import { until } from "../support/headrace.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-cache-"));
let redis: RedisServer;
let upstream: ScriptedUpstream;
let servers: ServerProcess[] = [];
let operator: string;
let key: string;
let accountId: string;

beforeAll(async () => {
  let databaseUrl: string;
  [redis, databaseUrl, upstream] = await Promise.all([
    startRedis(directory),
    freshDatabase(),
    startUpstream(chatScript(["a secret answer"])),
  ]);
  const env = {
    HEADRACE_DATABASE_URL: databaseUrl,
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: randomBytes(32).toString("hex"),
  };
  const kept = (store: string) => `
models:
  - id: kept
    environments: [live]
    deployments: [{ upstream: up, model: upstream-model }]
    policies: { cache: { requests: all } }
cache: { store: ${store} }
tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]
`;
  const args = ["--mode", "production", "--public-url", "http://localhost:7545"];
  servers = await Promise.all(
    ["redis", "redis", "memory", "memory"].map((store, index) => {
      const config = join(directory, `${index}.yaml`);
      writeFileSync(config, upstreamYaml(upstream, kept(store)));
      return startServerProcess({ config, env, dataDir: join(directory, `data-${index}`), args });
    }),
  );
  const made = await runCommand(["operator-key", "--data-dir", servers[0]?.dataDir ?? "", "--quiet"], { env });
  operator = made.stdout.trim();
  [accountId, key] = await account("One");
}, 60_000);

afterAll(async () => {
  await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  await Promise.all([redis.stop(), upstream[Symbol.asyncDispose]()]);
  rmSync(directory, { recursive: true, force: true });
});

function ask(index: number, path: string, body: unknown, asker = key, method = "POST"): Promise<Response> {
  const headers = { authorization: `Bearer ${asker}`, "content-type": "application/json" };
  return fetch((servers[index]?.url ?? "") + path, {
    method,
    headers,
    ...(body !== undefined ? { body: JSON.stringify(body) } : {}),
  });
}

async function read(index: number, path: string, body: unknown, asker: string): Promise<Record<string, unknown>> {
  return (await (await ask(index, path, body, asker)).json()) as Record<string, unknown>;
}

/** Its id, and a key of it. */
async function account(name: string): Promise<[id: string, key: string]> {
  const { id } = await read(0, "/v1/admin/accounts", { name, tier: "enterprise" }, operator);
  const made = await read(0, `/v1/admin/accounts/${id}/keys`, { name: "a", environment: "live" }, operator);
  return [String(id), String(made["key"])];
}

const asked = (content: string) => ({ model: "kept", messages: [{ role: "user", content }] });

async function resultAt(index: number, content: string, asker = key): Promise<string | null> {
  const response = await ask(index, "/v1/chat/completions", asked(content), asker);
  const text = await response.text();
  if (!text.includes("a secret answer")) throw new Error(text);
  return response.headers.get("x-headrace-cache");
}

test("serves an answer cached at one replica from another, and stores no plain text in Redis", async () => {
  expect(await resultAt(0, "one")).toBe("miss");
  await until(async () => (await resultAt(1, "one")) === "hit", "it is kept");
  const all = (await redis.command("KEYS", "headrace:answers:*")) as string[];
  const names = all.filter((name) => !/:(?:run$|forgotten:)/.test(name));
  expect(names).toHaveLength(1);
  const value = String(await redis.command("GET", names[0] ?? ""));
  expect(value).not.toContain("secret");
  expect(Buffer.from(value.split(".")[1] ?? "", "base64url").toString()).not.toContain("secret");
  expect(Number(await redis.command("TTL", names[0] ?? ""))).toBeWithin(3_500, 3_601);
});

test("does not serve an answer from any replica after an operator cleared it at one", async () => {
  expect((await ask(0, "/v1/admin/cache?model=kept", undefined, operator, "DELETE")).status).toBe(200);
  expect(await resultAt(1, "one")).toBe("miss");
  await until(async () => (await resultAt(0, "one")) === "hit", "it is kept");
});

test("keeps a cleared cache cleared if Redis evicts the record of that", async () => {
  await resultAt(0, "put out");
  await until(async () => (await resultAt(0, "put out")) === "hit", "it is kept");
  expect((await ask(0, `/v1/admin/cache?account=${accountId}`, undefined, operator, "DELETE")).status).toBe(200);
  const marks = (await redis.command("KEYS", "headrace:answers:forgotten:*")) as string[];
  expect(marks.length).toBeGreaterThan(3);
  await redis.command("DEL", ...marks);
  expect(await resultAt(1, "put out")).toBe("miss");
});

test("clears the in-memory caches of all replicas for one account alone", async () => {
  const [, other] = await account("Two");
  const kept = async (index: number, asker = key) => (await resultAt(index, "memory", asker)) === "hit";
  for (const index of [2, 3]) {
    for (const asker of [key, other]) expect(await kept(index, asker)).toBe(false);
    for (const asker of [key, other]) expect(await kept(index, asker)).toBe(true);
  }
  expect((await ask(2, `/v1/admin/cache?account=${accountId}`, undefined, operator, "DELETE")).status).toBe(200);
  expect([await kept(2), await kept(2, other)]).toEqual([false, true]);
  await until(async () => (await resultAt(3, `memory`)) === "miss", "the other one has forgotten it");
  expect(await kept(3, other)).toBe(true);
});

test("answers requests without the cache after a short wait if Redis does not respond", async () => {
  redis.pause();
  const startedMs = performance.now();
  expect(await resultAt(1, "one")).toBe("miss");
  expect(performance.now() - startedMs).toBeLessThan(5_000);
  redis.resume();
  await until(async () => (await resultAt(1, "one")) === "hit", "it is kept");
  await redis.stop();
  expect(await resultAt(1, "one")).toBe("miss");
  expect((await ask(1, "/v1/admin/cache", undefined, operator, "DELETE")).status).toBe(503);
  await redis.start();
  await until(async () => (await resultAt(1, "two")) === "hit", "it is kept");
});

test("drops cached answers of an account that was suspended while Redis was away", async () => {
  const [id, leaving] = await account("Leaving");
  await resultAt(0, "of one that leaves", leaving);
  await until(async () => (await resultAt(1, "of one that leaves", leaving)) === "hit", "it is kept");
  redis.pause();
  for (const status of ["suspended", "active"]) {
    expect((await ask(0, `/v1/admin/accounts/${id}`, { status }, operator, "PATCH")).status).toBe(200);
  }
  redis.resume();
  await until(async () => (await resultAt(0, "still away", leaving)) === "hit", "Redis is back");
  await until(async () => (await resultAt(1, "still away", leaving)) === "hit", "Redis is back");
  expect(await resultAt(1, "of one that leaves", leaving)).toBe("miss");
});

test("serves no cleared answer that a stale copy of Redis still has", async () => {
  await resultAt(0, "older");
  await until(async () => (await resultAt(0, "older")) === "hit", "it is kept");
  await redis.command("SAVE");
  expect((await ask(0, `/v1/admin/cache?account=${accountId}`, undefined, operator, "DELETE")).status).toBe(200);
  await redis.stop();
  await redis.start();
  for (const index of [0, 1]) {
    await until(async () => (await resultAt(index, `newer ${index}`)) === "hit", "answers are kept again");
  }
  expect(await resultAt(1, "older")).toBe("miss");
});
