// An upgrade of a ledger with 100,000 requests from before the parts of usage were kept: soon done, the same sums, and a server of the version before writes on.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { openUpToDate } from "../../src/maintenance/upgrade.ts";
import { openPostgres } from "../../src/storage/sql/database.ts";
import { migrationsFor } from "../../src/storage/sql/migrations.ts";
import { bringUpToDate, knownSteps } from "../../src/storage/sql/schema.ts";
import { silentLog } from "../support/data-directory.ts";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { sharedPostgres } from "../support/postgres.ts";

const requests = long ? 2_000_000 : 100_000;
/** The step that adds the columns. */
const before = migrationsFor("postgres").findIndex((step) => step.some((statement) => /cached_tokens/.test(statement)));
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** Usage of a month, with costs of all sizes and some without a price, in the words of both databases. `numbers`: gives `n` from 1. */
function fillWith(numbers: string): string[] {
  const sums = ["requests", "prompt_tokens", "completion_tokens", "nano_usd", "errors"];
  return [
    `INSERT INTO usage_records (request_id, at, account_id, key_id, environment, operation, model, outcome, prompt_tokens,
      completion_tokens, estimated, duration_ms, nano_usd)
    SELECT 'req_' || n, 1790000000 + n * 315 % 2592000, 'acct_1', 'key_' || n % 10, 'live', 'chat', 'm' || n % 5,
      'completed', n * 17 % 90001, n * 31 % 4001, 0, 5, CASE WHEN n % 11 = 0 THEN NULL ELSE n * 7919 % 1000003 END
    FROM ${numbers}`,
    ...[3_600, 86_400].map(
      (
        seconds,
      ) => `INSERT INTO usage_rollups (account_id, environment, span, start, key_id, app_id, model, ${sums.join(", ")})
    SELECT account_id, environment, '${seconds === 3_600 ? "hour" : "day"}', at - at % ${seconds}, key_id, '', model, count(*),
      sum(prompt_tokens), sum(completion_tokens), sum(coalesce(nano_usd, 0)), 0
    FROM usage_records GROUP BY 1, 2, 3, 4, 5, 6, 7`,
    ),
  ];
}

/** Everything that is added up, as text with all digits. */
async function sumsOf(db: SQL): Promise<Record<string, string>> {
  const figures = ["prompt_tokens", "completion_tokens", "nano_usd"];
  const all = figures.map((figure) => `CAST(sum(${figure}) AS TEXT) AS ${figure}`).join(", ");
  const [records] = await db.unsafe(`SELECT CAST(count(*) AS TEXT) AS requests, ${all} FROM usage_records`);
  const rolled: Record<string, string>[] = await db.unsafe(
    `SELECT span, CAST(sum(requests) AS TEXT) AS requests, ${all} FROM usage_rollups GROUP BY span ORDER BY span`,
  );
  return { records: JSON.stringify(records), rolled: JSON.stringify([...rolled]) };
}

/** What the parts of all requests add up to, and how many have details. */
const parts = `SELECT CAST(sum(cached_tokens + cache_write_tokens + reasoning_tokens) AS TEXT) AS sum, count(details) AS details
  FROM usage_records`;

/** A server of the version before: what it settles, and the longest that it had to wait for that. */
function writeAsBefore(db: SQL) {
  const written = { requests: 0, nanoUsd: 0n, maxMs: 0, failures: [] as unknown[] };
  let isOver = false;
  const one = async (own: number) => {
    for (let n = 0; !isOver; n++) {
      const [id, nanoUsd] = [`req_late_${own}_${n}`, 1 + ((own * 1_000 + n) % 977)];
      const startedMs = performance.now();
      try {
        await db.begin(async (tx) => {
          await tx`INSERT INTO usage_records (request_id, at, account_id, key_id, environment, operation, model, outcome,
              prompt_tokens, completion_tokens, estimated, duration_ms, nano_usd)
            VALUES (${id}, 1795000000, 'acct_1', 'key_1', 'live', 'chat', 'late', 'completed', 10, 5, 0, 5, ${nanoUsd})`;
          for (const span of ["day", "hour"])
            await tx`INSERT INTO usage_rollups AS r (account_id, environment, span, start, key_id, app_id, model, requests,
                prompt_tokens, completion_tokens, nano_usd, errors)
              VALUES ('acct_1', 'live', ${span}, 1794960000, 'key_1', '', 'late', 1, 10, 5, ${nanoUsd}, 0)
              ON CONFLICT (account_id, environment, span, start, key_id, app_id, model) DO UPDATE SET
                requests = r.requests + excluded.requests, prompt_tokens = r.prompt_tokens + excluded.prompt_tokens,
                completion_tokens = r.completion_tokens + excluded.completion_tokens, nano_usd = r.nano_usd + excluded.nano_usd`;
        });
        written.requests++;
        written.nanoUsd += BigInt(nanoUsd);
      } catch (error) {
        written.failures.push(error);
      }
      written.maxMs = Math.max(written.maxMs, performance.now() - startedMs);
    }
  };
  const all = Array.from({ length: 4 }, (_, own) => one(own));
  return {
    written,
    async stop() {
      isOver = true;
      await Promise.all(all);
    },
  };
}

// hardening: O4
test(`adds columns to PostgreSQL with ${requests} old requests quickly, with unchanged sums, while another server writes`, async () => {
  const url = await (await sharedPostgres()).emptyDatabase();
  const other = new SQL(url, { max: 6 });
  stack.push({ [Symbol.asyncDispose]: () => other.close() });
  await other.begin((tx) => bringUpToDate(tx, "postgres", before));
  for (const statement of fillWith(`generate_series(1::bigint, ${requests}) AS n`)) await other.unsafe(statement);
  const sums = await sumsOf(other);
  const writing = writeAsBefore(other);
  await until(() => writing.written.requests > 50, "it writes");
  const quietMs = writing.written.maxMs;
  writing.written.maxMs = 0;
  const startedMs = performance.now();
  const db = await openPostgres(url);
  const tookMs = performance.now() - startedMs;
  stack.push({ [Symbol.asyncDispose]: () => db.close() });
  const upTo = writing.written.requests;
  await until(() => writing.written.requests > upTo + 50, "it writes on, on the new schema");
  const waitedMs = writing.written.maxMs;
  await writing.stop();
  console.log({ tookMs, quietMs, waitedMs, written: writing.written.requests });
  expect(writing.written.failures).toEqual([]);
  expect((await db`SELECT max(version) AS version FROM schema_migrations`)[0].version).toBe(knownSteps);
  // Nobody waits for longer than the change of a table takes, and that is no rewriting of its rows.
  expect(waitedMs).toBeLessThan(withinMs(400));
  expect(tookMs).toBeLessThan(withinMs(1_500));
  const late = await sumsOf(db);
  const { requests: many, nanoUsd } = writing.written;
  const grown = (text = "") => (JSON.parse(text) as Record<string, string>[]).map((row) => row["nano_usd"]);
  const first = JSON.parse(sums["records"] ?? "") as Record<string, string>;
  expect(JSON.parse(late["records"] ?? "")).toEqual({
    requests: String(Number(first["requests"]) + many),
    prompt_tokens: String(BigInt(first["prompt_tokens"] ?? 0) + 10n * BigInt(many)),
    completion_tokens: String(BigInt(first["completion_tokens"] ?? 0) + 5n * BigInt(many)),
    nano_usd: String(BigInt(first["nano_usd"] ?? 0) + nanoUsd),
  });
  expect(grown(late["rolled"])).toEqual(grown(sums["rolled"]).map((sum) => String(BigInt(sum ?? 0) + nanoUsd)));
  expect([...(await db.unsafe(parts))]).toEqual([{ sum: "0", details: "0" }]);
}, 600_000);

// hardening: O4
test(`adds columns to SQLite with ${requests} old requests quickly, with unchanged sums`, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-old-ledger-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(dataDir, { recursive: true, force: true }) });
  const old = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db"), create: true });
  await old.unsafe("PRAGMA journal_mode = WAL");
  await old.begin("IMMEDIATE", (tx) => bringUpToDate(tx, "sqlite", before));
  const numbers = `(WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted LIMIT ${requests}) SELECT n FROM counted)`;
  for (const statement of fillWith(numbers)) await old.unsafe(statement);
  const sums = await sumsOf(old);
  await old.close();
  const startedMs = performance.now();
  const options = { log: silentLog, version: "2.0.0", nowSeconds: 1_800_000_000 };
  const db = await openUpToDate({ config: { dataDir, backupBeforeUpgrade: true }, ...options });
  const tookMs = performance.now() - startedMs;
  stack.push({ [Symbol.asyncDispose]: () => db.close() });
  console.log({ tookMs });
  expect(tookMs).toBeLessThan(withinMs(long ? 60_000 : 4_000));
  expect(await sumsOf(db)).toEqual(sums);
  expect([...(await db.unsafe(parts))]).toEqual([{ sum: "0", details: 0 }]);
}, 600_000);
