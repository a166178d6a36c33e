// Without PostgreSQL: what monitors are told and when, for how long keys are believed, and what Redis is still good for.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { startCutLink } from "../support/cut-link.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const secret = "5a".repeat(32);
/** A sixth of the usual. */
const databaseBounds = { readMs: 1_000, transactionMs: 1_300, statementMs: 800, lockMs: 650, idleInTransactionMs: 500 };
let postgres: PostgresServer;
let upstream: ScriptedUpstream;
const stack: AsyncDisposable[] = [];

beforeAll(async () => {
  [postgres, upstream] = await Promise.all([startPostgres(), startUpstream()]);
});

afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

afterAll(async () => {
  await postgres[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function start(url: string, { env = {}, ...options }: TestServerOptions = {}): Promise<TestServer> {
  const server = await startHeadrace({
    // The configuration of development, where nothing is limited.
    yaml: upstreamYaml(upstream),
    databaseBounds,
    ...options,
    env: { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: secret, ...env },
  });
  stack.push(server);
  return server;
}

function chat(server: TestServer, key = server.key): Promise<Response> {
  return server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "x" }], max_tokens: 9 },
    headers: { authorization: `Bearer ${key}` },
  });
}

async function status(answer: Promise<Response>): Promise<number> {
  const response = await answer;
  await response.text();
  return response.status;
}

async function makeKey(server: TestServer, by = server.key): Promise<{ id: string; key: string }> {
  const headers = { authorization: `Bearer ${by}` };
  const response = await server.request("/v1/keys", { body: { name: "x" }, headers });
  expect(response.status).toBe(200);
  return (await response.json()) as { id: string; key: string };
}

interface Readiness {
  status: string;
  checks: Record<string, string>;
  code: number;
  tookMs: number;
}

async function readiness(server: TestServer): Promise<Readiness> {
  const started = performance.now();
  const response = await fetch(`${server.url}/readyz`);
  const body = (await response.json()) as Pick<Readiness, "status" | "checks">;
  return { ...body, code: response.status, tookMs: performance.now() - started };
}

/** Steady load with one key: ids of what was served, other statuses, and the longest time that one took. */
function load(server: TestServer, clients: number) {
  const served: string[] = [];
  const others: number[] = [];
  let maxMs = 0;
  let running = true;
  const done = Array.from({ length: clients }, async () => {
    while (running) {
      const started = performance.now();
      const response = await chat(server);
      await response.text();
      maxMs = Math.max(maxMs, performance.now() - started);
      if (response.status === 200) served.push(response.headers.get("x-request-id") ?? "");
      else others.push(response.status);
      await Bun.sleep(5);
    }
  });
  return {
    served,
    others,
    maxMs: () => maxMs,
    async stop() {
      running = false;
      await Promise.all(done);
    },
  };
}

async function booked(url: string): Promise<{ ids: string[]; rolledUp: number }> {
  const db = new SQL(url, { max: 1 });
  try {
    const rows: { request_id: string }[] = await db`SELECT request_id FROM usage_records`;
    const [rolled] = await db`SELECT coalesce(sum(requests), 0) AS n FROM usage_rollups WHERE span = 'hour'`;
    return { ids: rows.map((row) => row.request_id), rolledUp: Number(rolled.n) };
  } finally {
    await db.close();
  }
}

/** What needs the database says so, within the time in which a client would wait. */
async function expectUnavailable(server: TestServer, coldKey: string): Promise<void> {
  const started = performance.now();
  const asked: [string, Promise<Response>][] = [
    ["a key that was not seen yet", chat(server, coldKey)],
    ["a key that does not exist", chat(server, generateApiKey("dev"))],
    ["making a key", server.request("/v1/keys", { body: { name: "x" } })],
    ["listing keys", server.request("/v1/keys")],
    ["usage", server.request("/v1/usage")],
    ["a token", server.request("/v1/auth/token", { body: { api_key: server.key } })],
  ];
  for (const [what, answer] of asked) {
    const response = await answer;
    expect([what, response.status, await response.json()]).toEqual([
      what,
      503,
      { error: expect.objectContaining({ code: "service_unavailable" }) },
    ]);
  }
  expect(performance.now() - started).toBeLessThan(withinMs(12_000));
}

for (const [fault, begin, end] of [
  ["killed", () => postgres.stop(), () => postgres.start()],
  ["frozen", () => postgres.pause(), () => postgres.resume()],
] as const) {
  // hardening: F18
  test(`stays ready but degraded with PostgreSQL ${fault} under load, books all usage later, and recovers`, async () => {
    const url = await postgres.freshDatabase();
    const server = await start(url);
    const cold = await makeKey(server);
    expect(await readiness(server)).toMatchObject({ status: "ready", code: 200, checks: { database: "ok" } });
    const steady = load(server, 6);
    await until(() => steady.served.length > 30, "some are served");

    await begin();
    await until(async () => (await readiness(server)).status === "degraded", "it is told");
    const reported = await readiness(server);
    expect(reported).toMatchObject({ code: 200, checks: { database: "failed", server: "ok" } });
    expect(reported.tookMs).toBeLessThan(withinMs(1_500));
    const during = steady.served.length;
    await expectUnavailable(server, cold.key);
    await until(() => steady.served.length > during + 50, "warm keys are served");
    expect(server.logged("key_store_unreachable").length).toBe(1);

    await end();
    await until(async () => (await readiness(server)).status === "ready", "it is ready again", 20_000);
    expect(await status(chat(server, cold.key))).toBe(200);
    await makeKey(server);
    await steady.stop();
    expect(steady.others).toEqual([]);
    const expected = steady.served.length + 1;
    await until(async () => (await booked(url)).ids.length >= expected, "all usage is written", 20_000);
    const { ids, rolledUp } = await booked(url);
    expect([ids.length, new Set(ids).size, rolledUp]).toEqual([expected, expected, expected]);
    expect(steady.served.filter((id) => !ids.includes(id))).toEqual([]);
    console.log(`${fault}: ${expected} served, the slowest after ${Math.round(steady.maxMs())} ms`);
    expect(steady.maxMs()).toBeLessThan(withinMs(2_500));
  }, 60_000);
}

// hardening: F18
test("trusts no credential and is not ready after five minutes without PostgreSQL", async () => {
  const clock = shiftedClock();
  const server = await start(await postgres.freshDatabase(), { clock });
  expect(await status(chat(server))).toBe(200);
  await postgres.stop();
  await until(async () => (await readiness(server)).status === "degraded", "it is told");
  clock.shift(290);
  expect(await status(chat(server))).toBe(200);
  expect(await readiness(server)).toMatchObject({ status: "degraded", code: 200 });
  clock.shift(20);
  expect(await status(chat(server))).toBe(503);
  expect(await readiness(server)).toMatchObject({ status: "not_ready", code: 503, checks: { database: "failed" } });
  await postgres.start();
  await until(async () => (await readiness(server)).status === "ready", "it is back", 20_000);
  expect(await status(chat(server))).toBe(200);
}, 60_000);

// hardening: F18, F32
test("refuses keys revoked elsewhere at a replica that reaches Redis alone, serves other known ones, and is not ready without any", async () => {
  const url = await postgres.freshDatabase();
  const [redis, link] = await Promise.all([startRedis(), startCutLink(Number(new URL(url).port))]);
  stack.push(redis, link);
  const env = { HEADRACE_REDIS_URL: redis.url };
  const whole = await start(url, { env });
  const far = new URL(url);
  far.port = String(link.port);
  const cutOff = await start(far.href, { env });
  const doomed = await makeKey(whole);
  for (const key of [whole.key, doomed.key]) expect(await status(chat(cutOff, key))).toBe(200);

  link.cut();
  await until(async () => (await readiness(cutOff)).checks["database"] === "failed", "it is told");
  for (let i = 0; i < 20; i++) expect(await status(chat(cutOff, doomed.key))).toBe(200);

  const revoked = await whole.request(`/v1/keys/${doomed.id}`, { method: "DELETE" });
  expect(revoked.status).toBe(200);
  const started = performance.now();
  await until(async () => (await status(chat(cutOff, doomed.key))) !== 200, "it is believed no more");
  const tookMs = performance.now() - started;
  console.log(`refused by a replica without its database after ${Math.round(tookMs)} ms`);
  expect(await status(chat(cutOff, doomed.key))).toBe(503);
  expect(await status(chat(whole))).toBe(200);
  expect(await status(chat(cutOff, whole.key))).toBe(200);
  // A changed file takes nobody away either.
  await cutOff.reconfigure(
    `${upstreamYaml(upstream)}tiers: [{ name: pro, requests_per_minute: 9, tokens_per_minute: null }]\n`,
  );
  expect(await status(chat(cutOff, whole.key))).toBe(200);
  expect(await readiness(cutOff)).toMatchObject({ status: "degraded", code: 200 });

  // A replica of the version before tells it thus: something changed, whatever it is.
  await redis.command("PUBLISH", "headrace:changes", "another-replica credentials");
  await until(async () => (await readiness(cutOff)).code === 503, "it is not ready");
  expect(await status(chat(cutOff, whole.key))).toBe(503);
  expect(await readiness(cutOff)).toMatchObject({ status: "not_ready", checks: { database: "failed" } });

  link.mend();
  await until(async () => (await status(chat(cutOff, doomed.key))) === 401, "the database is back", 20_000);
  expect(await status(chat(cutOff, whole.key))).toBe(200);
}, 60_000);
