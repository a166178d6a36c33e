// Money under load: 300 clients at once in all formats, on one server and on three replicas, with prices that change meanwhile.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { adminOf } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startRedis } from "../support/redis.ts";
import { startReplicas } from "../support/replicas.ts";
import { startUpstream } from "../support/scripted-upstream.ts";
import { canMount, emptyDisk, fillDisk, smallDisk } from "../support/small-disk.ts";
import {
  ask,
  finePrice,
  type Heard,
  nanoUsdOf,
  type PicoRates,
  priceOf,
  randomUsageScript,
  usageYaml,
} from "../support/usage-load.ts";
import { kinds } from "../support/vendor-usage.ts";

const clients = 300;
const prices = long ? 200 : 10;
const testMs = long ? 600_000 : 60_000;
/** Each client asks in each format so many times. */
const rounds = long ? 40 : 1;
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** A key with quotas in USD that nothing of this spends. */
async function keyOf(server: TestServer, key: string): Promise<string> {
  const quotas = [
    { unit: "usd", amount: 1_000, per: "month" },
    { unit: "usd", amount: 1_000, per: "5h" },
  ];
  const body = { name: "Load", scopes: ["chat:write", "usage:read"], quotas };
  const headers = { authorization: `Bearer ${key}` };
  const answer = await server.request("/v1/keys", { body, headers });
  return ((await answer.json()) as { key: string }).key;
}

/** All clients at once; what each heard. */
async function load(urls: readonly string[], key: string): Promise<Heard[]> {
  const heard: Heard[] = [];
  const client = async (own: number) => {
    for (let round = 0; round < rounds * kinds.length; round++) {
      const kind = kinds[(own + round) % kinds.length] ?? "chat";
      const model = kinds[Math.floor(own / kinds.length) % kinds.length] ?? "chat";
      // Each pair of formats, whole and streamed.
      const stream = Math.floor(own / kinds.length ** 2) % 2 === 0;
      const url = urls[(own + round) % urls.length] ?? "";
      heard.push(await ask({ url, key, model, kind, stream }));
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, own) => client(own)));
  return heard;
}

interface Row {
  request_id: string;
  nano_usd: number | string;
  cached_tokens: number | string;
  cache_write_tokens: number | string;
  reasoning_tokens: number | string;
}

/** The whole ledger: its rows, and the sums of the roll-ups. */
interface Books {
  rows: Row[];
  rolled: bigint;
}

const ofRows = "SELECT request_id, nano_usd, cached_tokens, cache_write_tokens, reasoning_tokens FROM usage_records";
const ofRollups = (span: string) =>
  `SELECT CAST(coalesce(sum(nano_usd), 0) AS TEXT) AS sum FROM usage_rollups WHERE span = '${span}'`;

function sqliteBooks(dataDir: string): Books {
  using db = new Sqlite(join(dataDir, "headrace.db"), { readonly: true });
  const rolled = db.query<{ sum: string }, []>(ofRollups("hour")).get();
  return { rows: db.query<Row, []>(ofRows).all(), rolled: BigInt(rolled?.sum ?? 0) };
}

async function postgresBooks(db: SQL): Promise<Books> {
  const [rolled] = await db.unsafe(ofRollups("hour"));
  return { rows: [...((await db.unsafe(ofRows)) as Row[])], rolled: BigInt(rolled.sum) };
}

/** Every client pays what it was told, to the last billionth: on the ledger and in its sums. Returns all of it. */
async function expectBooked(
  heard: readonly Heard[],
  books: () => Books | Promise<Books>,
  servers: readonly TestServer[],
): Promise<bigint> {
  await Promise.all(servers.map((server) => server.governance.ledger.flush()));
  const { rows } = await until(async () => {
    const now = await books();
    return now.rows.length >= heard.length ? now : undefined;
  }, "all is on the ledger");
  const figures = ({ nano_usd, cached_tokens, cache_write_tokens, reasoning_tokens }: Omit<Row, "request_id">) =>
    [nano_usd, cached_tokens, cache_write_tokens, reasoning_tokens].map(Number).join(" ");
  const booked = Object.fromEntries(rows.map((row) => [row.request_id, figures(row)]));
  const due = Object.fromEntries(
    heard.map(({ id, reported }) => [
      id,
      figures({
        ...{ nano_usd: nanoUsdOf(reported, finePrice), cached_tokens: reported.cached },
        ...{ cache_write_tokens: reported.written, reasoning_tokens: reported.reasoning },
      }),
    ]),
  );
  expect(rows).toHaveLength(heard.length);
  expect(booked).toEqual(due);
  const sum = heard.reduce((all, { reported }) => all + BigInt(nanoUsdOf(reported, finePrice)), 0n);
  await until(async () => (await books()).rolled === sum, "the roll-ups have the same sum");
  return sum;
}

/** The same in a report, in the account's month and in the quotas of the key, wherever they are asked. */
async function expectShown(sum: bigint, servers: readonly TestServer[], key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  for (const server of servers) {
    const report = (await (await server.request("/v1/usage?bucket=month", { headers })).json()) as {
      data: { cost: number }[];
    };
    const account = (await (await server.request("/v1/account", { headers })).json()) as {
      quota: { spend: { used: number } };
      quotas: { used: number }[];
    };
    const shown = [
      ...report.data.map(({ cost }) => cost),
      ...[account.quota.spend, ...account.quotas].map(({ used }) => used),
    ];
    expect(shown).toEqual(Array.from({ length: 4 }, () => Number(sum) / 1e9));
  }
}

test(
  "charges 300 clients in all formats exactly the reported usage on one server",
  async () => {
    const upstream = await startUpstream(randomUsageScript);
    stack.push(upstream);
    const flags = { mode: "production", publicUrl: "http://127.0.0.1:7545" };
    const server = await startHeadrace({ flags, yaml: usageYaml(upstream.url, finePrice) });
    stack.push(server);
    const key = await keyOf(server, server.key);
    const heard = await load([server.url], key);
    expect(heard.filter(({ status }) => status !== 200)).toEqual([]);
    const sum = await expectBooked(heard, () => sqliteBooks(server.dataDir), [server]);
    await expectShown(sum, [server], key);
    console.log(`${heard.length} requests: ${sum} nano-USD`);
  },
  testMs,
);

test(
  "charges 300 clients in all formats exactly the reported usage on three replicas",
  async () => {
    const [upstream, redis] = await Promise.all([startUpstream(randomUsageScript), startRedis()]);
    stack.push(upstream, redis);
    const env = { HEADRACE_REDIS_URL: redis.url };
    const replicas = await startReplicas({ count: 3, env, yaml: usageYaml(upstream.url, finePrice) });
    stack.push(replicas);
    const db = new SQL(replicas.env["HEADRACE_DATABASE_URL"] ?? "", { max: 1 });
    stack.push({ [Symbol.asyncDispose]: () => db.close() });
    const [first] = replicas.servers;
    const key = await keyOf(first as TestServer, replicas.key);
    const heard = await load(
      replicas.servers.map(({ url }) => url),
      key,
    );
    expect(heard.filter(({ status }) => status !== 200)).toEqual([]);
    const sum = await expectBooked(heard, () => postgresBooks(db), replicas.servers);
    await expectShown(sum, replicas.servers, key);
    console.log(`${heard.length} requests: ${sum} nano-USD`);
  },
  testMs,
);

// hardening: F20
test.skipIf(!canMount)(
  "charges exactly the answered requests if the disk is full while usage is written",
  async () => {
    const disk = smallDisk(12);
    stack.push(disk);
    const upstream = await startUpstream(randomUsageScript);
    stack.push(upstream);
    const dataDir = join(disk.path, "data");
    const yaml = usageYaml(upstream.url, finePrice);
    const server = await startHeadrace({ dataDir, yaml });
    stack.push(server);
    const heard: Heard[] = [];
    let isOver = false;
    const client = async (own: number) => {
      for (let round = 0; !isOver; round++) {
        const kind = kinds[(own + round) % kinds.length] ?? "chat";
        const model = kinds[round % kinds.length] ?? "chat";
        heard.push(await ask({ url: server.url, key: server.key, model, kind, stream: round % 2 === 0 }));
      }
    };
    const all = Array.from({ length: 40 }, (_, own) => client(own));
    const refused = () => heard.filter(({ status }) => status !== 200).length;
    for (let times = 0; times < 3; times++) {
      const served = heard.length - refused();
      await until(() => heard.length - refused() > served + 100, "usage is written");
      const before = refused();
      fillDisk(disk.path);
      await until(() => refused() > before + 100, "nothing can be accounted for any more");
      emptyDisk(disk.path);
    }
    await until(async () => (await fetch(`${server.url}/readyz`)).ok, "it is ready again");
    isOver = true;
    await Promise.all(all);
    // Messages says 529 where others say 503.
    expect([...new Set(heard.map(({ status }) => status))].sort()).toEqual([200, 503, 529]);
    const paid = heard.filter(({ status }) => status === 200);
    const sum = await expectBooked(paid, () => sqliteBooks(dataDir), [server]);
    expect(server.logged("ledger_left_on_spool")).toEqual([]);
    await stack.pop()?.[Symbol.asyncDispose]();
    // Nothing comes twice with the next start.
    await using again = await startHeadrace({ dataDir, yaml });
    await again.governance.ledger.flush();
    const { rows, rolled } = sqliteBooks(dataDir);
    expect([rows.length, rolled]).toEqual([paid.length, sum]);
    using db = new Sqlite(join(dataDir, "headrace.db"), { readonly: true });
    expect(db.query("SELECT DISTINCT details FROM usage_records").all()).toEqual([{ details: '{"served":["flex"]}' }]);
    expect(db.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  },
  testMs,
);

/** One price after another, none of whose figures can be put together of those of others. */
function priceNumber(version: number): PicoRates {
  const { input, cachedInput, cacheWrite, output, reasoning, request } = finePrice;
  return {
    ...{ input: input * (version + 1), cachedInput: cachedInput * (((version * 7) % 31) + 1) },
    ...{ cacheWrite: cacheWrite * (((version * 5) % 23) + 1), output: output * (((version * 11) % 37) + 1) },
    ...{ reasoning: reasoning * (((version * 13) % 41) + 1), request: request * (version + 1) },
  };
}

/** The word of a change is at another replica by then, also where the machine does much else. */
const replicaLateMs = withinMs(1_000);

/** A request with when it was sent, and when its model server was asked: its price is of a moment in between. */
interface Timed extends Heard {
  sentMs: number;
  heardMs: number;
}

/** When a price was set: from the first moment at which it may have held to the first at which no other did. */
interface Change {
  fromMs: number;
  toMs: number;
}

interface Changing {
  change(version: number): Promise<void>;
  models: readonly string[];
  count: number;
  clients: number;
}

/** Asks with `clients` clients while `change` sets one price after another, `count` times. */
async function loadWhile(
  urls: readonly string[],
  key: string,
  { change, models, count, clients: many }: Changing,
): Promise<{ heard: Timed[]; changes: Change[] }> {
  const heard: Timed[] = [];
  const changes: Change[] = [{ fromMs: 0, toMs: 0 }];
  let isOver = false;
  const client = async (own: number) => {
    for (let round = 0; !isOver; round++) {
      const kind = kinds[(own + round) % kinds.length] ?? "chat";
      const sentMs = performance.now();
      const model = models[round % models.length] ?? "";
      const url = urls[(own + round) % urls.length] ?? "";
      const answer = await ask({ url, key, model, kind, stream: round % 2 === 0 });
      heard.push({ ...answer, sentMs, heardMs: performance.now() });
    }
  };
  const all = Array.from({ length: many }, (_, own) => client(own));
  for (let version = 1; version <= count; version++) {
    const before = heard.length;
    await until(() => heard.length >= before + many, "each price is of some requests");
    const fromMs = performance.now();
    await change(version);
    changes.push({ fromMs, toMs: performance.now() });
  }
  isOver = true;
  await Promise.all(all);
  return { heard, changes };
}

/**
 * Each request was charged by one of the prices that held while it ran. `lateMs`: for so long after a change another replica
 * may not have heard of it. Returns how many were charged by each.
 */
async function expectOnePrice(
  { heard, changes }: Awaited<ReturnType<typeof loadWhile>>,
  books: () => Books | Promise<Books>,
  lateMs = 0,
): Promise<number[]> {
  expect(heard.filter(({ status }) => status !== 200)).toEqual([]);
  const { rows } = await until(async () => {
    const now = await books();
    return now.rows.length >= heard.length ? now : undefined;
  }, "all is on the ledger");
  expect(rows).toHaveLength(heard.length);
  const booked = new Map(rows.map(({ request_id, nano_usd }) => [request_id, Number(nano_usd)]));
  const perPrice = changes.map(() => 0);
  const odd: unknown[] = [];
  for (const { id, reported, sentMs, heardMs } of heard) {
    const nanoUsd = booked.get(id);
    const version = changes.findIndex((_, place) => nanoUsdOf(reported, priceNumber(place)) === nanoUsd);
    const [own, next] = [changes[version], changes[version + 1]];
    if (own && own.fromMs <= heardMs && (next === undefined || next.toMs + lateMs >= sentMs))
      perPrice[version] = (perPrice[version] ?? 0) + 1;
    else odd.push({ id, reported, nanoUsd, version, sentMs, heardMs, own, next });
  }
  expect(odd).toEqual([]);
  const sum = rows.reduce((all, { nano_usd }) => all + BigInt(nano_usd), 0n);
  await until(async () => (await books()).rolled === sum, "the roll-ups have the same sum");
  return perPrice;
}

/** A server on loopback that nobody listens at: what it has is served by another model. */
const fallen = `  - { id: fallen, deployments: [{ upstream: dead, model: told }], fallbacks: [chat] }\n`;
const dead = 'upstreams:\n  - { name: dead, url: "http://127.0.0.1:9/v1", discover: false, apis: [chat] }\n';

test(
  "charges each request, fallbacks too, at one moment's price while headrace.yaml changes under load",
  async () => {
    const upstream = await startUpstream(randomUsageScript);
    stack.push(upstream);
    const yaml = (version: number) =>
      usageYaml(upstream.url, priceNumber(version)).replace("upstreams:\n", dead) + fallen;
    const server = await startHeadrace({ yaml: yaml(0) });
    stack.push(server);
    const key = await keyOf(server, server.key);
    const change = (version: number) => server.reconfigure(yaml(version));
    const loaded = await loadWhile([server.url], key, {
      change,
      models: ["chat", "fallen"],
      count: prices,
      clients: 40,
    });
    await server.governance.ledger.flush();
    const perPrice = await expectOnePrice(loaded, () => sqliteBooks(server.dataDir));
    console.log({ perPrice });
    expect(perPrice.filter((requests) => requests > 0).length).toBeGreaterThan(prices / 2);
  },
  testMs,
);

test(
  "charges each request at one moment's price while one of three replicas changes it under load",
  async () => {
    const [upstream, redis] = await Promise.all([startUpstream(randomUsageScript), startRedis()]);
    stack.push(upstream, redis);
    const env = { HEADRACE_REDIS_URL: redis.url };
    const replicas = await startReplicas({ count: 3, env, yaml: usageYaml(upstream.url, finePrice) });
    stack.push(replicas);
    const db = new SQL(replicas.env["HEADRACE_DATABASE_URL"] ?? "", { max: 1 });
    stack.push({ [Symbol.asyncDispose]: () => db.close() });
    const servers = replicas.servers as [TestServer, TestServer, TestServer];
    const operator = await makeOperatorKey(servers[0].dataDir, [], replicas.env);
    const added = { id: "stored", price: priceOf(priceNumber(0)), deployments: [{ upstream: "chat", model: "told" }] };
    expect((await adminOf(servers[0], operator)("POST", "/models", added)).status).toBe(200);
    const key = await keyOf(servers[0], replicas.key);
    const isServed = (server: TestServer) => server.catalog.find("stored") !== undefined;
    await until(() => servers.every(isServed), "all replicas have the model");
    const change = async (version: number) => {
      const at = servers[version % 3] as TestServer;
      const changed = await adminOf(at, operator)("PATCH", "/models/stored", { price: priceOf(priceNumber(version)) });
      expect(changed.status).toBe(200);
    };
    const urls = servers.map(({ url }) => url);
    const loaded = await loadWhile(urls, key, { change, models: ["stored"], count: prices, clients: 40 });
    await Promise.all(servers.map((server) => server.governance.ledger.flush()));
    const perPrice = await expectOnePrice(loaded, () => postgresBooks(db), replicaLateMs);
    console.log({ perPrice });
    expect(perPrice.filter((requests) => requests > 0).length).toBeGreaterThan(prices / 2);
  },
  testMs,
);
