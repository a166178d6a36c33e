// Answers that are kept in Redis: given by every replica, sealed there, forgotten everywhere, and missed by nobody where it is away.
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

beforeAll(async () => {
  let databaseUrl: string;
  [redis, databaseUrl, upstream] = await Promise.all([
    startRedis(),
    freshDatabase(),
    startUpstream(chatScript(["a secret answer"])),
  ]);
  const env = {
    HEADRACE_DATABASE_URL: databaseUrl,
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: randomBytes(32).toString("hex"),
  };
  const config = join(directory, "headrace.yaml");
  const kept = `
models:
  - id: kept
    environments: [live]
    deployments: [{ upstream: up, model: upstream-model }]
    policies: { cache: { requests: all } }
cache: { store: redis }
tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]
`;
  writeFileSync(config, upstreamYaml(upstream, kept));
  const args = ["--mode", "production", "--public-url", "http://localhost:7545"];
  servers = await Promise.all(
    [0, 1].map((index) => startServerProcess({ config, env, dataDir: join(directory, `data-${index}`), args })),
  );
  const made = await runCommand(["operator-key", "--data-dir", servers[0]?.dataDir ?? "", "--quiet"], { env });
  operator = made.stdout.trim();
  const account = await read(0, "/v1/admin/accounts", { name: "One", tier: "enterprise" }, operator);
  const first = await read(0, `/v1/admin/accounts/${account["id"]}/keys`, { name: "a", environment: "live" }, operator);
  key = String(first["key"]);
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
    ...(method === "POST" ? { body: JSON.stringify(body) } : {}),
  });
}

async function read(index: number, path: string, body: unknown, asker: string): Promise<Record<string, unknown>> {
  return (await (await ask(index, path, body, asker)).json()) as Record<string, unknown>;
}

const asked = (content: string) => ({ model: "kept", messages: [{ role: "user", content }] });

async function resultAt(index: number, content: string): Promise<string | null> {
  const response = await ask(index, "/v1/chat/completions", asked(content));
  const text = await response.text();
  if (!text.includes("a secret answer")) throw new Error(text);
  return response.headers.get("x-headrace-cache");
}

test("an answer that one replica keeps is given by another, and Redis alone gives nothing of it away", async () => {
  expect(await resultAt(0, "one")).toBe("miss");
  await until(async () => (await resultAt(1, "one")) === "hit", "it is kept");
  const names = (await redis.command("KEYS", "headrace:answers:*")) as string[];
  expect(names).toHaveLength(1);
  const value = String(await redis.command("GET", names[0] ?? ""));
  expect(value).not.toContain("secret");
  expect(Buffer.from(value.split(".")[1] ?? "", "base64url").toString()).not.toContain("secret");
  expect(Number(await redis.command("TTL", names[0] ?? ""))).toBeWithin(3_500, 3_601);
});

test("what an operator has forgotten at one replica is given by none", async () => {
  expect((await ask(0, "/v1/admin/cache?model=kept", undefined, operator, "DELETE")).status).toBe(200);
  expect(await resultAt(1, "one")).toBe("miss");
  await until(async () => (await resultAt(0, "one")) === "hit", "it is kept");
});

test("where Redis does not answer, requests are answered as if nothing were kept, after a moment", async () => {
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
