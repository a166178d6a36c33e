// Usage with all of its parts, in a backup, restored, and copied to PostgreSQL: every row is what it was, to the last digit.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import type { UsageDetails } from "../../src/domain/usage/usage-parts.ts";
import { openUsageWriter } from "../../src/ledger/usage/usage-writer.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { type FilledDirectory, filledDirectory } from "../support/data-directory.ts";
import { sharedPostgres } from "../support/postgres.ts";

let filled: FilledDirectory;
beforeEach(async () => {
  filled = await filledDirectory();
});
afterEach(() => filled[Symbol.asyncDispose]());

const most = Number.MAX_SAFE_INTEGER;
const allDetails: UsageDetails = {
  ...{ cacheWriteHourTokens: 1_001, inputAudioTokens: 1_003, inputImageTokens: 1_007 },
  ...{ outputAudioTokens: 1_009, outputImageTokens: 1_011, searches: 13 },
  ...{ served: ["priority", "fast", "us"], billedNanoUsd: most },
};

/** Each of its kind: all that there is, the largest figures, one part alone, no price, no parts. */
function records(accountId: string): UsageRecord[] {
  const usual: Omit<UsageRecord, "requestId"> = {
    ...{ at: 1_800_000_000, accountId, keyId: "key_1", appId: null, environment: "live" },
    ...{ operation: "chat", model: "m", stream: true, outcome: "completed", errorCode: null },
    ...{ promptTokens: 30_000, completionTokens: 9_000, estimated: false, nanoUsd: 4_999_999_999, capped: false },
    ...{ upstream: "up", durationMs: 9, firstTokenMs: 1, queueMs: 0 },
  };
  const parts = { cachedTokens: 20_011, cacheWriteTokens: 3_003, reasoningTokens: 777 };
  const odd = Array.from({ length: 500 }, (_, n): Partial<UsageRecord> => {
    const details = n % 3 === 0 ? { ...allDetails, searches: n, billedNanoUsd: n * 7_919 } : undefined;
    const own = { cachedTokens: n * 37, cacheWriteTokens: n % 5, reasoningTokens: n * 11, details };
    return { at: 1_800_000_000 + n * 1_801, model: `m${n % 3}`, nanoUsd: n * 104_729, parts: own };
  });
  const all: Partial<UsageRecord>[] = [
    { parts: { ...parts, details: allDetails } },
    {
      ...{ promptTokens: most, completionTokens: most, nanoUsd: most, model: "most" },
      parts: { cachedTokens: most, cacheWriteTokens: most, reasoningTokens: most, details: { searches: most } },
    },
    { parts: { ...parts, cachedTokens: 0, cacheWriteTokens: 0 } },
    { nanoUsd: null, parts: { ...parts, details: { served: ["flex"] } } },
    {},
    ...odd,
  ];
  return all.map((one, n) => ({ ...usual, ...one, requestId: `req_${String(n).padStart(4, "0")}` }));
}

const figures = ["prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens"];
const texts = [...figures, "nano_usd"].map((name) => `CAST(${name} AS TEXT) AS ${name}`).join(", ");
const ofRecords = `SELECT request_id, CAST(at AS TEXT) AS at, model, details, ${texts} FROM usage_records ORDER BY request_id`;
const ofRollups = `SELECT span, CAST(start AS TEXT) AS start, model, ${texts} FROM usage_rollups ORDER BY span, start, model`;
type Rows = Record<string, string | null>[];

function sqliteRows(dataDir: string): [records: Rows, rollups: Rows] {
  using db = new Sqlite(join(dataDir, "headrace.db"), { readonly: true });
  return [db.query<Rows[number], []>(ofRecords).all(), db.query<Rows[number], []>(ofRollups).all()];
}

/** What was written, as a server that was stopped leaves it. */
async function written(): Promise<[records: Rows, rollups: Rows]> {
  const writer = await openUsageWriter(filled.db);
  const all = records(filled.accountId);
  await writer.insert(all);
  while (writer.rollups.isDue || writer.rollups.isBehind) await writer.rollups.goOn();
  writer.close();
  const rows = sqliteRows(filled.dataDir);
  expect(rows[1].length).toBeGreaterThan(100);
  // Not what the reading makes of it, but what was given.
  expect(rows[0].map((row) => [row["nano_usd"], row["cached_tokens"], row["details"]])).toEqual(
    all.map(({ nanoUsd, parts }) => [
      nanoUsd === null ? null : String(nanoUsd),
      String(parts?.cachedTokens ?? 0),
      parts?.details ? JSON.stringify(parts.details) : null,
    ]),
  );
  return rows;
}

// hardening: O1
test("restores a backup with each part of usage and exact sums", async () => {
  const rows = await written();
  await filled.leave();
  const [backup, restored] = [join(filled.root, "backup"), join(filled.root, "restored")];
  const made = await runCommand(["backup", backup, "--data-dir", filled.dataDir, "--include-secret"]);
  expect(made).toMatchObject({ code: 0 });
  mkdirSync(restored, { mode: 0o700 });
  rmSync(filled.dataDir, { recursive: true });
  expect(await runCommand(["restore", backup, "--data-dir", restored])).toMatchObject({ code: 0 });
  expect(sqliteRows(restored)).toEqual(rows);
});

// hardening: O5
test("copies each part of usage to PostgreSQL with exact sums", async () => {
  const rows = await written();
  await filled.leave();
  const url = await (await sharedPostgres()).emptyDatabase();
  const moved = await runCommand(["migrate", "sqlite-to-postgres", "--data-dir", filled.dataDir], {
    env: { HEADRACE_DATABASE_URL: url },
    nowMs: Date.now(),
  });
  expect(moved).toMatchObject({ code: 0 });
  const db = new SQL(url, { max: 1 });
  const inPostgres = [[...(await db.unsafe(ofRecords))], [...(await db.unsafe(ofRollups))]];
  await db.close();
  expect(inPostgres).toEqual(rows);
});
