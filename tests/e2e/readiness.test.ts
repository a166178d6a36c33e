// Each state in which a server refuses everybody, or nearly so: its readiness says so and names why, it stays alive, and it is ready again by itself.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { maxClockOffsetSeconds } from "../../src/base/clock.ts";
import { openRaw, type RawConnection } from "../hostile/raw-client.ts";
import { startCutLink } from "../support/cut-link.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { manualClock, shiftedClock } from "../support/manual-clock.ts";
import { freshDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const connections = 20;
const clock = shiftedClock();
/** Time passes for the server alone, whose clock stays that of the database. */
const goOn = (seconds: number) => {
  clock.shift(seconds);
  clock.jump(-seconds);
};
const stack: AsyncDisposable[] = [];
let upstream: ScriptedUpstream;
let server: TestServer;
let databaseUrl: string;
let database: { cut(): void; mend(): void };
let redis: { cut(): void; mend(): void };

beforeAll(async () => {
  const redisServer = await startRedis();
  upstream = await startUpstream(chatScript());
  databaseUrl = await freshDatabase();
  const [toDatabase, toRedis] = await Promise.all([
    startCutLink(Number(new URL(databaseUrl).port)),
    startCutLink(redisServer.port),
  ]);
  [database, redis] = [toDatabase, toRedis];
  const through = new URL(databaseUrl);
  through.port = String(toDatabase.port);
  server = await startHeadrace({
    yaml: upstreamYaml(upstream),
    env: {
      HEADRACE_DATABASE_URL: through.href,
      HEADRACE_REDIS_URL: `redis://127.0.0.1:${toRedis.port}`,
      HEADRACE_SECRET: randomBytes(32).toString("hex"),
    },
    ...{ clock, httpLimits: { connections } },
  });
  stack.push(redisServer, upstream, toDatabase, toRedis, server);
  expect((await chat()).status).toBe(200);
});

afterAll(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const chat = () =>
  server.request("/v1/chat/completions", {
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hello" }] },
    // Each request comes anew, as of a client that keeps no connection.
    headers: { connection: "close" },
  });

/** By a connection of its own, which is open before anything happens. */
async function openMonitor() {
  const connection = await openRaw(server.url);
  let asked = 0;
  const get = async (path: string) => {
    await connection.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    const { answers } = await connection.answered(++asked);
    return answers.at(-1);
  };
  return {
    async readiness(): Promise<{ code: number; status: string; checks: object }> {
      const answer = await get("/readyz");
      return { code: answer?.status ?? 0, ...JSON.parse(answer?.body ?? "{}") };
    },
    isAlive: async () => (await get("/healthz"))?.status === 200,
    [Symbol.dispose]: () => connection.socket.destroy(),
  };
}

interface State {
  state: string;
  begin(): unknown;
  end(): unknown;
  status: "not_ready" | "degraded";
  check: Record<string, string>;
  /** What a chat gets meanwhile. */
  chat: number;
  /** Looked at every ten seconds alone. */
  rarely?: boolean;
}

async function secretInUse(change: string): Promise<void> {
  const db = new SQL(databaseUrl, { max: 1 });
  await db.unsafe(`UPDATE installation SET value = ${change} WHERE name = 'secret_check'`);
  await db.close();
}

const spool = () => join(server.dataDir, "spool");
const held: RawConnection[] = [];

const states: State[] = [
  {
    state: "the database is away and nobody is known any more",
    begin: () => {
      database.cut();
      goOn(310);
    },
    end: () => database.mend(),
    ...{ status: "not_ready", check: { database: "failed" }, chat: 503 },
  },
  {
    state: "the database is away, and keys are known",
    begin: () => database.cut(),
    end: () => database.mend(),
    ...{ status: "degraded", check: { database: "failed" }, chat: 200 },
  },
  {
    state: "Redis is away",
    begin: () => redis.cut(),
    end: () => redis.mend(),
    ...{ status: "degraded", check: { redis: "failed" }, chat: 200 },
  },
  {
    state: "the spool cannot be written",
    begin() {
      renameSync(spool(), `${spool()}-away`);
      writeFileSync(spool(), "");
    },
    end() {
      Bun.spawnSync(["rm", spool()]);
      renameSync(`${spool()}-away`, spool());
    },
    // The file that is open goes on until it is full.
    ...{ status: "not_ready", check: { spool: "failed" }, chat: 200 },
  },
  {
    state: "another secret took the place of this server's",
    begin: () => secretInUse("'x' || value"),
    end: () => secretInUse("substr(value, 2)"),
    ...{ status: "not_ready", check: { secret: "failed" }, chat: 200, rarely: true },
  },
  {
    state: "all connections are taken",
    async begin() {
      // Those of the monitor and of `fetch` are among them.
      for (let one = 0; one < connections; one++) held.push(await openRaw(server.url));
    },
    end: () => {
      for (const { socket } of held.splice(0)) socket.destroy();
    },
    ...{ status: "not_ready", check: { connections: "failed" }, chat: 503 },
  },
  {
    state: "as many bytes are held in memory as may be, for some seconds",
    begin: () => bufferedBytes.add("chats", bufferedBytes.maxBytes),
    end: () => bufferedBytes.add("chats", -bufferedBytes.maxBytes),
    ...{ status: "not_ready", check: { memory: "failed" }, chat: 503 },
  },
  {
    state: "the clock is off by more than machines may be",
    begin: () => clock.jump(maxClockOffsetSeconds + 2),
    end: () => clock.jump(-maxClockOffsetSeconds - 2),
    ...{ status: "degraded", check: { clock: "degraded" }, chat: 200, rarely: true },
  },
];

for (const { state, begin, end, status, check, chat: answer, rarely } of states) {
  // hardening: F31
  test(`reports ${status} with ${JSON.stringify(check)} while ${state}, stays alive, and recovers by itself`, async () => {
    using monitor = await openMonitor();
    const look = () => {
      if (rarely) goOn(11);
      return monitor.readiness();
    };
    await until(async () => (await look()).status === "ready", "it is ready");
    expect((await chat()).status).toBe(200);
    await begin();
    try {
      const code = status === "not_ready" ? 503 : 200;
      await until(async () => (await look()).status === status, "it is told");
      expect(await look()).toMatchObject({ code, status, checks: check });
      expect(await monitor.isAlive()).toBe(true);
      expect((await chat()).status).toBe(answer);
    } finally {
      await end();
    }
    await until(async () => (await look()).status === "ready", "it is ready again", 20_000);
    expect((await chat()).status).toBe(200);
  }, 60_000);
}

test("degraded with SQLite while the clock is earlier than the first account, as on a machine that boots in 1970", async () => {
  const own = manualClock();
  await using alone = await startHeadrace({ clock: own });
  const checked = async () => {
    own.advance(2_000);
    const { status, checks } = (await (await alone.request("/readyz")).json()) as Record<string, { clock?: string }>;
    return [status, checks?.clock];
  };
  expect(await checked()).toEqual(["ready", "ok"]);
  own.jump(-own.nowSeconds());
  expect(await checked()).toEqual(["degraded", "degraded"]);
  expect(alone.logged("clock_is_off")).toHaveLength(1);
  own.jump(1_790_000_100);
  expect(await checked()).toEqual(["ready", "ok"]);
});
