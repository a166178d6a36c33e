// PostgreSQL, Redis and replicas that hang, die and come back in any order under mixed traffic: nobody gets in who may not, and nothing is lost.
import { afterAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { startPostgres } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { chatScript, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { seeded } from "../support/seeded.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const rounds = long ? 40 : 2;
const seed = 7;
const random = seeded(seed);
const between = (from: number, to: number) => from + random() * (to - from);
const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)] as Value;
/** What is promised of revocations where either store can be reached, and of the return of a store. */
const revokedMs = 10_000;
const recoveryMs = 5_000;
const directory = mkdtempSync(join(tmpdir(), "headrace-storm-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

// hardening: F18
test(`survives ${rounds} rounds of store and replica faults, seed ${seed}`, async () => {
  await using postgres = await startPostgres();
  await using redis = await startRedis();
  await using upstream = await startUpstream(chatScript());
  const databaseUrl = await postgres.freshDatabase();
  const env = {
    HEADRACE_DATABASE_URL: databaseUrl,
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: randomBytes(32).toString("hex"),
  };
  const config = join(directory, "headrace.yaml");
  writeFileSync(
    config,
    upstreamYaml(upstream, "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]\n"),
  );
  const logs: string[] = [];
  const start = (index: number) =>
    startServerProcess({
      ...{ config, env, dataDir: join(directory, `data-${index}`) },
      args: ["--mode", "production", "--public-url", "http://localhost:7545"],
    });
  const servers: ServerProcess[] = await Promise.all([0, 1, 2].map(start));
  const at = (index: number) => servers[index] as ServerProcess;
  const { stdout } = await runCommand(["operator-key", "--data-dir", at(0).dataDir, "--quiet"], { env });
  const operator = stdout.trim();

  const ask = async (index: number, path: string, key: string, body?: unknown, method?: string) => {
    const begun = performance.now();
    const { url } = at(index);
    const response = await fetch(url + path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    });
    const text = await response.text();
    return {
      status: response.status,
      text,
      id: response.headers.get("x-request-id") ?? "",
      tookMs: performance.now() - begun,
    };
  };
  const chat = (index: number, key: string, stream = false) =>
    ask(index, "/v1/chat/completions", key, {
      model: "upstream-model",
      stream,
      max_tokens: 9,
      messages: [{ role: "user", content: "x" }],
    });
  const makeKey = async (index: number) => {
    const { status, text } = await ask(index, "/v1/keys", operator, {
      name: "x",
      scopes: ["chat:write", "usage:read"],
    });
    return status === 200 ? (JSON.parse(text) as { id: string; key: string }) : undefined;
  };

  const violations: string[] = [];
  const statuses: Record<string, Record<string, number>> = {};
  const longest: Record<string, number> = {};
  const frozen = new Set<number>();
  const note = (
    what: string,
    { status, text, tookMs }: { status: number; text: string; tookMs: number },
    allowed: readonly number[],
  ) => {
    const of = statuses[what] ?? {};
    statuses[what] = of;
    of[status] = (of[status] ?? 0) + 1;
    longest[what] = Math.max(longest[what] ?? 0, tookMs);
    if (!allowed.includes(status)) violations.push(`${fault}: ${what}: ${status} ${text.slice(0, 200)}`);
  };
  let fault = "none";
  let running = true;
  const whole = new Set<string>();
  const steady = await makeKey(0);
  if (!steady) throw new Error("no key");
  const revoked: { key: string; atMs: number }[] = [];
  /** The last moment at which one of the stores was away: a revocation may not be known where it was. */
  let awayMs = 0;
  let pgAway = false;
  let redisAway = false;

  const client = async (every: number, work: () => Promise<void>) => {
    while (running) {
      try {
        await work();
      } catch (error) {
        const { name, message } = error as Error;
        // A replica that was killed or is frozen: its clients go elsewhere.
        if (frozen.size === 0) violations.push(`${fault}: ${name} ${message}`);
      }
      await Bun.sleep(every);
    }
  };
  const anyone = () => {
    const able = [0, 1, 2].filter((index) => !frozen.has(index));
    return able[Math.floor(Math.random() * able.length)] as number;
  };
  const clients = [
    ...Array.from({ length: 8 }, () =>
      client(5, async () => {
        const answer = await chat(anyone(), steady.key, Math.random() < 0.5);
        note("warm", answer, [200, 503]);
        if (answer.status === 200) whole.add(answer.id);
      }),
    ),
    client(20, async () => note("made up", await chat(anyone(), generateApiKey("live")), [401, 429, 503])),
    client(30, async () =>
      note("reports", await ask(anyone(), "/v1/usage?start=2020-01-01T00:00:00Z", steady.key), [200, 503]),
    ),
    client(30, async () => note("keys", await ask(anyone(), "/v1/keys", operator), [200, 503])),
    client(50, async () => {
      const made = await makeKey(anyone());
      if (!made) return;
      for (const index of [0, 1, 2]) if (!frozen.has(index)) await chat(index, made.key);
      const answer = await ask(anyone(), `/v1/keys/${made.id}`, operator, undefined, "DELETE");
      note("revoking", answer, [200, 503]);
      if (answer.status === 200) revoked.push({ key: made.key, atMs: performance.now() });
      if (revoked.length > 200) revoked.splice(0, 100);
    }),
    client(10, async () => {
      const one = revoked[Math.floor(Math.random() * revoked.length)];
      if (!one) return;
      const sentMs = performance.now();
      const [wasPg, wasRedis] = [pgAway, redisAway];
      const index = anyone();
      const answer = await chat(index, one.key);
      const ageMs = sentMs - one.atMs;
      note("revoked", answer, [200, 401, 503]);
      const reachable = !(wasPg && wasRedis) && !(pgAway && redisAway);
      if (answer.status === 200 && ageMs > revokedMs && reachable && awayMs < sentMs - revokedMs) {
        violations.push(`${fault}: revoked ${Math.round(ageMs)} ms ago, served by ${index}`);
      }
    }),
    ...[0, 1, 2].map((index) =>
      client(100, async () => {
        if (frozen.has(index)) return;
        const begun = performance.now();
        const response = await fetch(`${at(index).url}/readyz`, { signal: AbortSignal.timeout(10_000) });
        const { status, checks } = (await response.json()) as { status: string; checks: Record<string, string> };
        note(
          "readyz",
          { status: response.status, text: JSON.stringify(checks), tookMs: performance.now() - begun },
          // Where both stores were away, a replica may know nobody any more.
          checks["database"] === "failed" ? [200, 503] : [200],
        );
        const isWhole = Object.values(checks).every((state) => state === "ok");
        if ((status === "ready") !== isWhole) violations.push(`readyz: ${status} ${JSON.stringify(checks)}`);
      }),
    ),
  ];

  const pg = { stop: postgres.stop, pause: postgres.pause, start: postgres.start, resume: postgres.resume };
  const wait = () => Bun.sleep(between(300, pick([800, 2_500, 7_000])));
  const away = (which: "pg" | "redis", how: "stop" | "pause") => {
    if (which === "pg") pgAway = true;
    else redisAway = true;
    return which === "pg" ? pg[how]() : redis[how]();
  };
  const back = async (which: "pg" | "redis", how: "stop" | "pause") => {
    const [start, resume] = which === "pg" ? [pg.start, pg.resume] : [redis.start, redis.resume];
    await (how === "stop" ? start() : resume());
    if (which === "pg") pgAway = false;
    else redisAway = false;
    awayMs = performance.now();
  };
  const rss = () =>
    servers.map(({ process }) =>
      Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${process.pid}/status`, "utf8"))?.[1]) / 1024),
    );
  await Bun.sleep(1_000);
  const rssBefore = rss();
  const recoveries: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const kind = pick(["pg", "redis", "both", "both", "replica hangs", "replica dies", "pg and replica dies"] as const);
    const [howPg, howRedis] = [pick(["stop", "pause"] as const), pick(["stop", "pause"] as const)];
    fault = `round ${round}: ${kind}, pg ${howPg}, redis ${howRedis}`;
    const victim = Math.floor(random() * 3);
    if (kind === "pg") {
      await away("pg", howPg);
      await wait();
      await back("pg", howPg);
    } else if (kind === "redis") {
      await away("redis", howRedis);
      await wait();
      await back("redis", howRedis);
    } else if (kind === "both") {
      const order = random() < 0.5 ? (["pg", "redis"] as const) : (["redis", "pg"] as const);
      const hows = { pg: howPg, redis: howRedis };
      await away(order[0], hows[order[0]]);
      await Bun.sleep(between(0, 1_500));
      await away(order[1], hows[order[1]]);
      await wait();
      const first = pick(order);
      await back(first, hows[first]);
      await Bun.sleep(between(0, 1_500));
      const second = first === "pg" ? "redis" : "pg";
      await back(second, hows[second]);
    } else if (kind === "replica hangs") {
      frozen.add(victim);
      at(victim).process.kill("SIGSTOP");
      await wait();
      at(victim).process.kill("SIGCONT");
      await Bun.sleep(500);
      frozen.delete(victim);
    } else {
      frozen.add(victim);
      at(victim).process.kill("SIGKILL");
      await at(victim).process.exited;
      logs.push(at(victim).log());
      if (kind !== "replica dies") {
        await away("pg", howPg);
        await Bun.sleep(between(100, 1_000));
        await back("pg", howPg);
      }
      servers[victim] = await start(victim);
      frozen.delete(victim);
    }
    const healedMs = performance.now();
    await Promise.all(
      servers.map((server) =>
        until(
          async () => ((await (await fetch(`${server.url}/readyz`)).json()) as { status: string }).status === "ready",
          `ready after ${fault}`,
          20_000,
        ),
      ),
    );
    await until(async () => (await makeKey(0)) !== undefined, `writes after ${fault}`, 20_000);
    const tookMs = performance.now() - healedMs;
    recoveries.push(Math.round(tookMs));
    if (tookMs > recoveryMs) violations.push(`${fault}: whole again after ${Math.round(tookMs)} ms`);
    for (const { key } of revoked.slice(-5)) {
      for (const index of [0, 1, 2]) {
        const { status } = await chat(index, key);
        if (status !== 401) violations.push(`${fault}: revoked, but ${status} when all is well again`);
      }
    }
  }
  running = false;
  await Promise.all(clients);
  const db = new SQL(databaseUrl, { max: 1 });
  const seen = upstream.requests.map(({ headers }) => String(headers["x-request-id"]));
  const rows = async () =>
    new Set((await db`SELECT request_id FROM usage_records`).map((row: { request_id: string }) => row.request_id));
  await until(
    async () => {
      const known = await rows();
      return seen.every((id) => known.has(id)) && [...whole].every((id) => known.has(id));
    },
    "all usage is booked",
    20_000,
  ).catch((error) => violations.push(String(error)));
  const known = await rows();
  const [sums] = await db`SELECT coalesce(sum(requests), 0) AS n FROM usage_rollups WHERE span = 'hour'`;
  await until(
    async () =>
      (
        await db`SELECT 1 FROM pg_stat_activity WHERE application_name = 'headrace' AND state LIKE 'idle in transaction%'`
      ).length === 0,
    "no transaction hangs",
  );
  const [connected] = await db`SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'headrace'`;
  await db.close();
  const redisClients = String(await redis.command("CLIENT", "LIST"))
    .trim()
    .split("\n").length;
  console.log({
    seed,
    statuses,
    longest,
    recoveries,
    rssBefore,
    rssAfter: rss(),
    connected: connected.n,
    redisClients,
    seen: seen.length,
    doubled: seen.length - new Set(seen).size,
    rows: known.size,
  });
  logs.push(...servers.map((server) => server.log()));
  for (const text of logs) {
    expect(text).not.toContain(new URL(databaseUrl).password);
    expect(text).not.toContain('"internal_error"');
  }
  await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  expect(violations.slice(0, 20)).toEqual([]);
  expect([seen.length, Number(sums.n)]).toEqual([new Set(seen).size, known.size]);
  expect(Number(connected.n)).toBeLessThanOrEqual(31);
  expect(redisClients).toBeLessThanOrEqual(3 * 3 + 1);
}, 1_200_000);
