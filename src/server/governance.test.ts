// Guarantees that only hold where the parts that govern requests are put together.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../tests/support/data-directory.ts";
import { sqliteDatabases, type TestDatabase } from "../../tests/support/databases.ts";
import { until } from "../../tests/support/headrace.ts";
import { granted, ledgerWith, none, quotaOf, reserve } from "../../tests/support/limits-contract.ts";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { startRedis } from "../../tests/support/redis.ts";
import { usageBegin } from "../../tests/support/usage-begin.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { loadConfig } from "../config/config.ts";
import { SharedLimits } from "../limits/shared/shared-limits.ts";
import { openGovernance } from "./governance.ts";
import { Opened } from "./opened.ts";

const databases = sqliteDatabases();
let opened: TestDatabase;
let closing: Opened;

beforeEach(async () => {
  opened = await databases.open();
  closing = new Opened();
});

afterEach(async () => {
  await closing.close(silentLog);
  await opened.close();
});

async function govern(yaml: string, clock: Clock = manualClock(), redisUrl?: string) {
  const { directory, db } = opened;
  const file = join(directory, "headrace.yaml");
  writeFileSync(file, yaml);
  const flags = { dataDir: directory, config: file };
  const config = { ...(await loadConfig({ flags, env: {}, cwd: directory })), redisUrl };
  const baseUrl = () => "http://127.0.0.1:7545/v1";
  return openGovernance({ db, config, log: silentLog, clock, baseUrl, opened: closing });
}

test("writes roll-ups of very many keys before deleting their old requests", async () => {
  const clock = manualClock();
  const { ledger, retention } = await govern("retention:\n  requests_days: 7\n", clock);
  const tokens = { promptTokens: 10, completionTokens: 5, estimated: false, nanoUsd: 25, capped: false };
  const times = { upstream: "up", durationMs: 9, firstTokenMs: 1, queueMs: 0 };
  for (let i = 0; i < 300; i++) {
    const at = clock.nowSeconds() - 8 * 86_400;
    const entry = ledger.begin({ ...usageBegin, requestId: `req_${i}`, keyId: `key_${i}`, at });
    entry.settle({ outcome: "completed", errorCode: null, ...tokens, ...times });
  }
  await until(() => ledger.figures.pending === 0, "all are in the database");
  const { db } = opened;
  const kept = async () => {
    const [records] = await db`SELECT count(*) AS requests FROM usage_records`;
    const [sums] = await db`SELECT coalesce(sum(requests), 0) AS requests FROM usage_rollups WHERE span = 'day'`;
    return { records: records.requests, sums: sums.requests };
  };
  // Their sums are gathered in memory alone.
  expect(await kept()).toEqual({ records: 300, sums: 0 });
  await db`
    CREATE TRIGGER too_early BEFORE DELETE ON usage_records
    WHEN (SELECT count(*) FROM usage_rollups WHERE span = 'day') < 300
    BEGIN SELECT RAISE(ABORT, 'not in the sums yet'); END`;
  await retention.sweep();
  expect(await kept()).toEqual({ records: 0, sums: 300 });
});

test("reports requests that end during the ledger's close to the shared limits", async () => {
  await using redis = await startRedis();
  const { ledger, limits } = await govern("", systemClock, redis.url);
  const quota = quotaOf(1_000);
  await limits.used(quota);
  const { lease } = await granted(limits.admit({ ...none, quotas: [quota] }, reserve(300)));
  const entry = ledger.begin(usageBegin);
  await entry.begun;
  const closed = closing.close(silentLog);
  // Cut off a moment ago.
  await Bun.sleep(50);
  lease.settle(300, 0);
  const tokens = { promptTokens: 300, completionTokens: 0, estimated: false, nanoUsd: 0, capped: false };
  const times = { upstream: "up", durationMs: 9, firstTokenMs: 1, queueMs: 0 };
  entry.settle({ outcome: "cancelled", errorCode: null, ...tokens, ...times });
  await closed;
  const url = redis.url;
  const directory = join(opened.directory, "other");
  const other = await SharedLimits.open({ url, clock: systemClock, ledger: ledgerWith(), directory, log: silentLog });
  expect(await other.used(quota)).toEqual({ tokens: 300, nanoUsd: 0 });
  await other.close();
});
