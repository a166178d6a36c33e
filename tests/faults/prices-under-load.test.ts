// Money under load: 300 clients at once in all formats, on one server and on three replicas, with prices that change meanwhile.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { startRedis } from "../support/redis.ts";
import { startReplicas } from "../support/replicas.ts";
import { startUpstream } from "../support/scripted-upstream.ts";
import { ask, finePrice, type Heard, nanoUsdOf, randomlyTold, toldYaml } from "../support/told-load.ts";
import { kinds } from "../support/vendor-usage.ts";

const clients = 300;
/** Each format, whole and streamed, so many times for each client. */
const rounds = long ? 20 : 1;
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
    for (let round = 0; round < rounds * kinds.length * 2; round++) {
      const kind = kinds[(own + round) % kinds.length] ?? "chat";
      const model = kinds[Math.floor(own / kinds.length + round / 2) % kinds.length] ?? "chat";
      const url = urls[(own + round) % urls.length] ?? "";
      heard.push(await ask({ url, key, model, kind, stream: round % 2 === 0 }));
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

/** Every client pays what it was told, to the last billionth: on the ledger, in its sums, in a report and in quotas. */
async function expectExact(
  heard: readonly Heard[],
  books: () => Books | Promise<Books>,
  servers: readonly TestServer[],
  key: string,
) {
  expect(heard.filter(({ status }) => status !== 200)).toEqual([]);
  await Promise.all(servers.map((server) => server.governance.ledger.flush()));
  const { rows } = await until(async () => {
    const now = await books();
    return now.rows.length >= heard.length ? now : undefined;
  }, "all is on the ledger");
  const figures = ({ nano_usd, cached_tokens, cache_write_tokens, reasoning_tokens }: Omit<Row, "request_id">) =>
    [nano_usd, cached_tokens, cache_write_tokens, reasoning_tokens].map(Number).join(" ");
  const booked = Object.fromEntries(rows.map((row) => [row.request_id, figures(row)]));
  const due = Object.fromEntries(
    heard.map(({ id, told }) => [
      id,
      figures({
        ...{ nano_usd: nanoUsdOf(told, finePrice), cached_tokens: told.cached },
        ...{ cache_write_tokens: told.written, reasoning_tokens: told.reasoning },
      }),
    ]),
  );
  expect(rows).toHaveLength(heard.length);
  expect(booked).toEqual(due);
  const sum = heard.reduce((all, { told }) => all + BigInt(nanoUsdOf(told, finePrice)), 0n);
  await until(async () => (await books()).rolled === sum, "the roll-ups have the same sum");
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
      account.quota.spend.used,
      ...account.quotas.map(({ used }) => used),
    ];
    expect(shown).toEqual([Number(sum) / 1e9, Number(sum) / 1e9, Number(sum) / 1e9, Number(sum) / 1e9]);
  }
  return sum;
}

test("300 clients at once, in all formats, pay in all what they were told to have used, to the last billionth: on one server", async () => {
  const upstream = await startUpstream(randomlyTold);
  stack.push(upstream);
  const flags = { mode: "production", publicUrl: "http://127.0.0.1:7545" };
  const server = await startHeadrace({ flags, yaml: toldYaml(upstream.url, finePrice) });
  stack.push(server);
  const key = await keyOf(server, server.key);
  const heard = await load([server.url], key);
  const sum = await expectExact(heard, () => sqliteBooks(server.dataDir), [server], key);
  console.log(`${heard.length} requests: ${sum} nano-USD`);
}, 60_000);

test("300 clients at once, in all formats, pay in all what they were told to have used, to the last billionth: on three replicas", async () => {
  const [upstream, redis] = await Promise.all([startUpstream(randomlyTold), startRedis()]);
  stack.push(upstream, redis);
  const env = { HEADRACE_REDIS_URL: redis.url };
  const replicas = await startReplicas({ count: 3, env, yaml: toldYaml(upstream.url, finePrice) });
  stack.push(replicas);
  const db = new SQL(replicas.env["HEADRACE_DATABASE_URL"] ?? "", { max: 1 });
  stack.push({ [Symbol.asyncDispose]: () => db.close() });
  const [first] = replicas.servers;
  const key = await keyOf(first as TestServer, replicas.key);
  const heard = await load(
    replicas.servers.map(({ url }) => url),
    key,
  );
  const sum = await expectExact(heard, () => postgresBooks(db), replicas.servers, key);
  console.log(`${heard.length} requests: ${sum} nano-USD`);
}, 60_000);
