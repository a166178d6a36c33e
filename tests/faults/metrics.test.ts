// Metrics while Redis is gone and the database hangs: they are read as ever, and say so.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { scrape } from "../support/exposition.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const token = "0123456789abcdef";
let postgres: PostgresServer;
let redis: RedisServer;
let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  [postgres, redis, upstream] = await Promise.all([startPostgres(), startRedis(), startUpstream()]);
  server = await startHeadrace({
    yaml: upstreamYaml(upstream),
    // A sixth of the usual.
    databaseBounds: { readMs: 1_000, transactionMs: 1_300, statementMs: 800, lockMs: 650, idleInTransactionMs: 500 },
    env: {
      HEADRACE_DATABASE_URL: await postgres.freshDatabase(),
      HEADRACE_REDIS_URL: redis.url,
      HEADRACE_SECRET: "5a".repeat(32),
      HEADRACE_METRICS_TOKEN: token,
    },
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
  await postgres[Symbol.asyncDispose]();
});

const metrics = () => scrape(server, { authorization: `Bearer ${token}` });

async function checks() {
  const now = await metrics();
  const check = (name: string) => now.get("headrace_check", { check: name });
  return [check("database"), check("redis"), now.get("headrace_degraded"), now.get("headrace_ready")];
}

async function chat(): Promise<number> {
  const response = await server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "x" }], max_tokens: 9 },
  });
  await response.text();
  return response.status;
}

// hardening: O11
test("is degraded without Redis, and recovers when Redis is back", async () => {
  expect(await checks()).toEqual([1, 1, 0, 1]);
  await redis.stop();
  await until(async () => String(await checks()) === "1,0,1,1", "it is told");
  await redis.start();
  await until(async () => String(await checks()) === "1,1,0,1", "it is back", 20_000);
});

// hardening: O11
test("answers metrics at once while the database hangs, and shows the waiting work", async () => {
  expect(await chat()).toBe(200);
  await postgres.pause();
  await until(async () => String(await checks()) === "0,1,1,1", "it is told");
  expect(await chat()).toBe(200);
  const waiting = await until(async () => {
    const now = await metrics();
    const failures = now.get("headrace_ledger_write_failures_total", { store: "database" }) ?? 0;
    return failures > 0 ? now : undefined;
  }, "a write has failed");
  expect(waiting.get("headrace_ledger_pending_records")).toBeGreaterThan(0);
  expect(waiting.get("headrace_ledger_spool_bytes")).toBeGreaterThan(0);
  expect(waiting.get("headrace_credentials_unconfirmed_seconds")).toBeGreaterThan(0.8);
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const started = performance.now();
    await metrics();
    times.push(performance.now() - started);
  }
  // Less than any question to the database is given.
  expect(Math.min(...times)).toBeLessThan(withinMs(100));
  await postgres.resume();
  await until(async () => String(await checks()) === "1,1,0,1", "it is back", 20_000);
  await until(async () => (await metrics()).get("headrace_ledger_pending_records") === 0, "all is written", 20_000);
});
