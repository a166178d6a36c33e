// PostgreSQL that is restarted, silent or gone under a server: warm keys are served, nobody else gets in, no usage is lost.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { SQL } from "bun";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

/** A sixth of the usual. */
const bounds = { readMs: 1_000, transactionMs: 1_300, statementMs: 800, lockMs: 650, idleInTransactionMs: 500 };

let postgres: PostgresServer;
let url: string;
let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

beforeEach(async () => {
  url = await postgres.freshDatabase();
  upstream = await startUpstream();
  server = await startHeadrace({
    yaml: upstreamYaml(upstream),
    databaseBounds: bounds,
    env: { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "6b".repeat(32) },
  });
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function chat(key = server.key): Promise<Response> {
  const response = await server.request("/v1/chat/completions", {
    headers: { authorization: `Bearer ${key}` },
    body: { model: "upstream-model", messages: [{ role: "user", content: "x" }] },
  });
  await response.clone().text();
  return response;
}

/** Ids of what was served, and other statuses, until it is stopped. */
function load(clients: number) {
  const served: string[] = [];
  const others = new Set<number>();
  let running = true;
  const done = Array.from({ length: clients }, async () => {
    while (running) {
      const response = await chat();
      if (response.status === 200) served.push(response.headers.get("x-request-id") ?? "");
      else others.add(response.status);
      await Bun.sleep(2);
    }
  });
  return {
    async stop() {
      running = false;
      await Promise.all(done);
      return { served, others };
    },
  };
}

async function ask<Row>(query: (db: SQL) => PromiseLike<Row[]>): Promise<Row[]> {
  const db = new SQL(url, { max: 1 });
  try {
    return [...(await query(db))];
  } finally {
    await db.close();
  }
}

/** Exactly what was served is there, in the records and in the roll-ups. */
async function expectBooked(served: readonly string[]): Promise<void> {
  const ids = () =>
    ask<{ request_id: string }>((db) => db`SELECT request_id FROM usage_records`).then((rows) =>
      rows.map((row) => row.request_id).sort(),
    );
  await until(async () => (await ids()).length >= served.length, "all that was served is booked", 20_000);
  expect(await ids()).toEqual([...served].sort());
  const [sum] = await ask<{ n: string }>((db) => db`SELECT sum(requests) AS n FROM usage_rollups WHERE span = 'hour'`);
  expect(Number(sum?.n)).toBe(served.length);
}

/** A key is warm once it was asked for after the last change of any: here its own creation, seen within a second. */
async function keyChangesAreSeen(): Promise<void> {
  await Bun.sleep(1_500);
}

async function timed(work: Promise<Response>): Promise<{ status: number; ms: number }> {
  const startedMs = performance.now();
  const { status } = await work;
  return { status, ms: performance.now() - startedMs };
}

// hardening: F18
test("fails no request of a warm key during three PostgreSQL restarts under load, and books each once", async () => {
  await keyChangesAreSeen();
  const first = await chat();
  expect(first.status).toBe(200);
  const running = load(6);
  for (let i = 0; i < 3; i++) {
    await Bun.sleep(300);
    await postgres.stop();
    await Bun.sleep(200);
    await postgres.start();
  }
  await Bun.sleep(300);
  const { served, others } = await running.stop();
  expect([...others]).toEqual([]);
  expect(served.length).toBeGreaterThan(50);
  await expectBooked([first.headers.get("x-request-id") ?? "", ...served]);
});

// hardening: F19
test("serves warm keys while PostgreSQL is silent, answers 503 in time for others, and recovers", async () => {
  await keyChangesAreSeen();
  expect((await chat()).status).toBe(200);
  const first = (await chat()).headers.get("x-request-id") ?? "";
  await until(async () => (await ask((db) => db`SELECT 1 FROM usage_records`)).length === 2, "both are booked");
  await postgres.pause();
  const running = load(4);
  const [unknown, created] = await Promise.all([
    timed(chat(generateApiKey("dev"))),
    timed(server.request("/v1/keys", { body: { name: "x" } })),
  ]);
  expect([unknown.status, created.status]).toEqual([503, 503]);
  expect(Math.max(unknown.ms, created.ms)).toBeLessThan(withinMs(bounds.transactionMs + 700));
  await postgres.resume();
  const afterwards = await until(
    async () => {
      const response = await server.request("/v1/keys", { body: { name: "x" } });
      return response.status === 200;
    },
    "a key can be made again",
    10_000,
  );
  expect(afterwards).toBe(true);
  const { served, others } = await running.stop();
  expect([...others]).toEqual([]);
  expect(served.length).toBeGreaterThan(50);
  const [{ n } = { n: 0 }] = await ask<{ n: string }>((db) => db`SELECT count(*) AS n FROM usage_records`);
  expect(Number(n)).toBeGreaterThan(0);
  const ids = await ask<{ request_id: string }>((db) => db`SELECT request_id FROM usage_records`);
  const before = ids.map((row) => row.request_id).filter((id) => id === first || !served.includes(id));
  expect(before).toHaveLength(2);
  await expectBooked([...served, ...before]);
});

// hardening: F19
test("closes soon while PostgreSQL is silent, and books the rest with the next server", async () => {
  await keyChangesAreSeen();
  await chat();
  await until(async () => (await ask((db) => db`SELECT 1 FROM usage_records`)).length === 1, "the first is booked");
  await postgres.pause();
  for (let i = 0; i < 5; i++) expect((await chat()).status).toBe(200);
  const startedMs = performance.now();
  await server.close();
  expect(performance.now() - startedMs).toBeLessThan(withinMs(5_000));
  await postgres.resume();
  server = await startHeadrace({
    yaml: upstreamYaml(upstream),
    dataDir: server.dataDir,
    env: { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "6b".repeat(32) },
  });
  const [{ n } = { n: 0 }] = await ask<{ n: string }>((db) => db`SELECT count(*) AS n FROM usage_records`);
  expect(Number(n)).toBe(6);
});
