// Two replicas of different versions at once, on PostgreSQL and Redis behind a load balancer, under load: no client notices, each request is booked once, and limits hold over both.
import { afterEach, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import releases from "../../deploy/releases.json" with { type: "json" };
import { earlierVersion, laterVersion, missingHistory, today, type Version } from "../support/earlier-programs.ts";
import { until } from "../support/headrace.ts";
import {
  api,
  chat,
  type Meter,
  newPlace,
  type Place,
  runVersion,
  startMeter,
  startVersion,
  stop,
} from "../support/installation.ts";
import { type LedgerSums, ledgerSums } from "../support/ledger-sums.ts";
import { type LoadBalancer, startLoadBalancer } from "../support/load-balancer.ts";
import { long } from "../support/long.ts";
import { sharedPostgres } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import type { ServerProcess } from "../support/server-process.ts";

const clients = 8;
/** Between two requests of a client: they are to see each moment of a replacement, not to fill the processors. */
const pauseMs = 15;
/** How long each mixture of versions is under load at least, beside what is done in it. */
const mixedMs = long ? 20_000 : 500;
const scopes = ["chat:write"];

const stack: AsyncDisposable[] = [];

afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Replica {
  place: Place;
  version: Version;
  server: ServerProcess;
  start(version: Version): Promise<ServerProcess>;
}

interface Installation {
  balancer: LoadBalancer;
  replicas: readonly [Replica, Replica];
  meter: Meter;
  ledger: LedgerSums;
  operator: string;
}

async function disposed<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

/** Two replicas of one version. */
async function install(version: Version): Promise<Installation> {
  const databaseUrl = await (await sharedPostgres()).emptyDatabase();
  const redis = await disposed(startRedis());
  const meter = await disposed(startMeter());
  const balancer = startLoadBalancer();
  const env = { HEADRACE_DATABASE_URL: databaseUrl, HEADRACE_REDIS_URL: redis.url, HEADRACE_LAME_DUCK_SECONDS: "1" };
  const replica = async (): Promise<Replica> => {
    const place = await newPlace(env);
    stack.push({ [Symbol.asyncDispose]: async () => rmSync(place.dataDir, { recursive: true, force: true }) });
    const start = (of: Version) => disposed(startVersion(of, place, { config: meter.config, publicUrl: balancer.url }));
    return { place, version, start, server: await start(version) };
  };
  const replicas: [Replica, Replica] = [await replica(), await replica()];
  stack.push(balancer, askReadiness(balancer, replicas));
  const { stdout } = await runVersion(version, replicas[0].place, ["operator-key", "--quiet"]);
  return { balancer, replicas, meter, ledger: ledgerSums({ databaseUrl }), operator: stdout.trim() };
}

/** Sends requests to those alone that say they are ready, as load balancers do. */
function askReadiness(balancer: LoadBalancer, replicas: readonly Replica[]): AsyncDisposable {
  const urls = replicas.map(({ place }) => `http://127.0.0.1:${place.port}`);
  const isReady = (url: string) =>
    fetch(`${url}/readyz`, { headers: { connection: "close" } }).then(
      ({ ok }) => ok,
      () => false,
    );
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const ready = await Promise.all(urls.map(isReady));
      balancer.servers = urls.filter((_, i) => ready[i]);
      await Bun.sleep(50);
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      await asking;
    },
  };
}

/** One replica is stopped, and a program of another version started in its place. */
async function replace({ balancer }: Installation, replica: Replica, version: Version): Promise<void> {
  await stop(replica.server);
  replica.server = await replica.start(version);
  replica.version = version;
  await until(() => balancer.servers.length === 2, "it is ready");
}

/** Chats of several clients by way of the load balancer, one in two a stream, until it is stopped: what went wrong with which. */
function load(url: string, key: string): { faults: string[]; stop(): Promise<number> } {
  const faults: string[] = [];
  let [sent, isOver] = [0, false];
  const one = async () => {
    const stream = sent++ % 2 === 0;
    const { status, text } = await chat(url, key, { stream });
    const isWhole = stream ? text.endsWith("data: [DONE]\n\n") : text.includes('"finish_reason":"stop"');
    if (status !== 200 || !isWhole) faults.push(`${status} ${text.slice(0, 200)}`);
    await Bun.sleep(pauseMs);
  };
  const done = Array.from({ length: clients }, async () => {
    while (!isOver) await one().catch((error: unknown) => faults.push(String(error)));
  });
  return {
    faults,
    async stop() {
      isOver = true;
      await Promise.all(done);
      return sent;
    },
  };
}

const burst = 40;
const quotaTokens = 300;
const most = 6;
/** Tokens that a request sets aside at most. */
const maxReserved = 20;

/** Clients of both replicas take all that two keys may have: no more than one replica alone would have given. */
async function expectExactLimits({ replicas, operator, meter }: Installation): Promise<void> {
  const make = (more: object): Promise<{ key: string }> =>
    api(replicas[0].server.url, operator, "/v1/keys", { name: "l", scopes, ...more });
  const rated = await make({ rate_limit: burst, rate_limit_window: 3_600 });
  const quoted = await make({ monthly_tokens: quotaTokens });
  const startedMs = performance.now();
  const take = async (key: string) => {
    const answers = await Promise.all(
      Array.from({ length: clients }, async (_, client) => {
        const own: { status: number; requestId: string; by: number }[] = [];
        for (let n = 0; n < 12; n++) {
          const by = (client + n) % replicas.length;
          own.push({ ...(await chat(replicas[by]?.server.url ?? "", key, { max_tokens: most })), by });
        }
        return own;
      }),
    );
    return answers.flat();
  };
  const ofRated = await take(rated.key);
  const admitted = ofRated.filter(({ status }) => status === 200);
  const refilled = ((performance.now() - startedMs) / 3_600_000) * burst;
  expect(admitted).toHaveLength(burst + Math.floor(refilled));
  expect(new Set(admitted.map(({ by }) => by)).size).toBe(2);
  // What is reserved and not used is free again: they ask until nothing is left for any.
  let used = 0;
  for (let before = -1; before < used; ) {
    before = used;
    const served = (await take(quoted.key)).filter(({ status }) => status === 200);
    for (const { requestId } of served) used += meter.answered.get(requestId)?.tokens ?? 0;
  }
  console.log({ admitted: admitted.length, used });
  expect(used).toBeLessThanOrEqual(quotaTokens);
  expect(used).toBeGreaterThan(quotaTokens - maxReserved);
}

/** Replaces one replica, and looks at limits while the two differ. */
async function rollHalf(installation: Installation, version: Version): Promise<void> {
  await replace(installation, installation.replicas[0], version);
  await expectExactLimits(installation);
  await Bun.sleep(mixedMs);
}

async function roll(installation: Installation, version: Version): Promise<void> {
  await rollHalf(installation, version);
  await replace(installation, installation.replicas[1], version);
}

async function expectOnce({ meter, ledger }: Installation): Promise<void> {
  await until(async () => Bun.deepEquals(await ledger.booked(), meter.booked()), "all usage is booked, and rolled up");
  expect(await ledger.requestIds()).toEqual([...meter.answered.keys()].sort());
  expect(meter.twice).toEqual([]);
}

async function underLoad(installation: Installation, work: () => Promise<void>): Promise<void> {
  const { balancer, operator, replicas } = installation;
  const { key } = await api(replicas[1].server.url, operator, "/v1/keys", { name: "k", scopes });
  const chats = load(balancer.url, key);
  try {
    await work();
  } finally {
    console.log(`${await chats.stop()} requests, of which ${chats.faults.length} failed`);
  }
  expect(chats.faults).toEqual([]);
  await expectOnce(installation);
}

// hardening: O4
test.skipIf(missingHistory !== undefined).each(long ? releases : releases.slice(-1))(
  "replaces replicas of $version by today's under load without errors, each request once, with exact limits",
  async (release) => {
    const installation = await install(earlierVersion(release));
    await underLoad(installation, () => roll(installation, today));
    expect(await installation.ledger.schema()).toBe(today.schema);
  },
  180_000,
);

// hardening: O4
test("replaces today's replicas by a newer schema's under load and back, without errors, each request once, with exact limits", async () => {
  const installation = await install(today);
  await underLoad(installation, async () => {
    await roll(installation, laterVersion());
    expect(await installation.ledger.schema()).toBe(laterVersion().schema);
    // The way of the second one is that of the first.
    await (long ? roll : rollHalf)(installation, today);
  });
  expect(installation.replicas[0].server.log()).toContain('"event":"schema_is_newer"');
}, 180_000);
