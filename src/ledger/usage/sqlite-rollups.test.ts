// Roll-ups of batches with very many keys: at each moment the roll-ups plus the gathered sums equal the sums of the
// records, also after the process died.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { sqliteDatabases, type TestDatabase } from "../../../tests/support/databases.ts";
import { manualClock, shiftedClock } from "../../../tests/support/manual-clock.ts";
import { rollupsIn, sumsOfRecords, unrolledIn } from "../../../tests/support/rolled-up.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpanTotals, UsageRecord, UsageTotals } from "../../domain/usage/usage.ts";
import { SpoolLedger } from "../ledger.ts";
import { UsageColumns } from "./usage-columns.ts";
import { catchUp } from "./usage-rows.ts";
import { UsageSums } from "./usage-sums.ts";
import { openUsageWriter, type UsageWriter } from "./usage-writer.ts";

const databases = sqliteDatabases();
let opened: TestDatabase;
let file: Sqlite;
const writers: UsageWriter[] = [];

beforeEach(async () => {
  opened = await databases.open();
  file = new Sqlite(join(opened.directory, "headrace.db"), { readwrite: true });
});

afterEach(async () => {
  for (const writer of writers.splice(0)) writer.close();
  file.close();
  await opened.close();
});

async function newWriter(clock: Clock = manualClock()): Promise<UsageWriter> {
  const writer = await openUsageWriter(opened.db, { clock });
  writers.push(writer);
  return writer;
}

/** Opens a ledger that writes to the database after 1 ms. */
function openLedger(clock: Clock = shiftedClock()): Promise<SpoolLedger> {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const spool = join(opened.directory, "spool");
  return SpoolLedger.open({ db: opened.db, directory: spool, log, clock, drainMs: 1 });
}

/** Makes records of 700 keys of three accounts, in the two hours around midnight. */
function recordOf(i: number): UsageRecord {
  return {
    requestId: `req_${i}`,
    at: 1_799_999_999 - (1_799_999_999 % 86_400) - 1_800 + (i % 3_600),
    accountId: `acct_${i % 3}`,
    keyId: `key_${((i * 7_919) % 700).toString(36)}`,
    appId: i % 4 === 0 ? "app_1" : null,
    environment: i % 5 === 0 ? "test" : "live",
    operation: "chat",
    model: `mödel "${i % 2}"`,
    stream: i % 2 === 0,
    outcome: i % 9 === 0 ? "failed" : "completed",
    errorCode: null,
    promptTokens: i,
    completionTokens: 2 * i,
    parts: i % 7 === 0 ? undefined : { cachedTokens: i, cacheWriteTokens: i % 11, reasoningTokens: i % 13 },
    estimated: false,
    nanoUsd: i % 3 === 0 ? null : 5_000_000_000 + i,
    capped: false,
    upstream: "up",
    durationMs: 500 + i,
    firstTokenMs: i % 2 === 0 ? null : 100 + i,
    queueMs: 0,
  };
}

const batchOf = (nth: number, size = 500) => Array.from({ length: size }, (_, i) => recordOf(nth * 1_000 + i));

const rollups = () => rollupsIn(file);
const sums = () => sumsOfRecords(file);
const unrolled = () => unrolledIn(file);

test("stores a batch of many keys in the records at once and in the roll-ups later", async () => {
  const writer = await newWriter();
  await writer.insert(batchOf(0, 100));
  expect([writer.rollups.isBehind, unrolled()]).toEqual([false, 0]);
  expect(rollups()).toEqual(sums());
  const before = rollups();
  for (const nth of [1, 2]) expect(await writer.insert(batchOf(nth))).toBe(500);
  expect([writer.rollups.isBehind, unrolled()]).toEqual([true, 2]);
  // A reader of the roll-ups must not see only a part of a batch.
  expect(rollups()).toEqual(before);
  await catchUp(writer);
  expect([writer.rollups.isBehind, unrolled()]).toEqual([false, 0]);
  expect(rollups()).toEqual(sums());
});

test("gathers batches of few keys too while sums are gathered, and only names their requests", async () => {
  const writer = await newWriter();
  const batches = [batchOf(0), batchOf(1, 1), batchOf(2, 30)];
  for (const batch of batches) await writer.insert(batch);
  expect(rollups()).toEqual([]);
  const named = file.query("SELECT batch, sums FROM usage_unrolled ORDER BY batch").values();
  expect(named).toEqual(batches.map((batch, i) => [i + 1, JSON.stringify(batch.map(({ requestId }) => requestId))]));
  await catchUp(writer);
  expect(rollups()).toEqual(sums());
  await writer.insert(batchOf(3, 30));
  expect([writer.rollups.isBehind, unrolled()]).toEqual([false, 0]);
  expect(rollups()).toEqual(sums());
});

test("includes sums that an earlier version left beside a batch's records", async () => {
  const writer = await newWriter();
  await writer.insert(batchOf(0));
  const left = new UsageSums("hour");
  left.add(UsageColumns.of(batchOf(0)));
  const text = left.textTakingAway(Array.from({ length: left.size }, (_, i) => i)).replace(/,-(?=\d)/g, ",");
  file.run("UPDATE usage_unrolled SET sums = ?", [text]);
  await newWriter();
  expect([rollups(), unrolled()]).toEqual([sums(), 0]);
});

test("ignores rows of a batch's earlier use", async () => {
  const writer = await newWriter();
  const batch = new UsageColumns(1_000);
  for (const [nth, size] of [
    [0, 600],
    [1, 300],
  ] as const) {
    batch.clear();
    const given = UsageColumns.of(batchOf(nth, size));
    for (let row = 0; row < size; row++) batch.copy(given, row);
    await writer.insert(batch);
  }
  await newWriter();
  expect(rollups()).toEqual(sums());
});

test("changes nothing for a batch without new records, gathered or not", async () => {
  const writer = await newWriter();
  await writer.insert(batchOf(0));
  expect(await writer.insert(batchOf(0))).toBe(0);
  expect([writer.rollups.gathered, unrolled()]).toEqual([1, 1]);
  await catchUp(writer);
  expect(await writer.insert(batchOf(0))).toBe(0);
  expect([writer.rollups.isBehind, unrolled()]).toEqual([false, 0]);
  expect(rollups()).toEqual(sums());
});

test("moves gathered sums into the roll-ups a minute after the first batch", async () => {
  const clock = manualClock();
  const writer = await newWriter(clock);
  await writer.insert(batchOf(0));
  clock.advance(30_000);
  await writer.insert(batchOf(1));
  clock.advance(29_000);
  expect(writer.rollups.isDue).toBe(false);
  clock.advance(1_000);
  while (writer.rollups.isDue) await writer.rollups.goOn();
  expect([writer.rollups.isBehind, unrolled()]).toEqual([false, 0]);
  expect(rollups()).toEqual(sums());
});

test("bounds the gathered sums, and writes further ones to the roll-ups at once", async () => {
  const writer = await newWriter();
  const ofKeys = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ ...recordOf(from + i), keyId: `key_${from + i}` }));
  for (let from = 0; from < 200_000; from += 1_000) await writer.insert(ofKeys(from, 1_000));
  expect(writer.rollups.isDue).toBe(true);
  for (let from = 200_000; from < 250_000; from += 1_000) await writer.insert(ofKeys(from, 1_000));
  const gathered = unrolled();
  await writer.insert(ofKeys(250_000, 1_000));
  expect([unrolled(), rollups().length]).toEqual([gathered, 2_000]);
});

test("counts each record once while sums are being moved", async () => {
  const writer = await newWriter();
  for (const nth of [0, 2]) await writer.insert(batchOf(nth));
  const day = 86_400;
  const since = 1_799_999_999 - (1_799_999_999 % day) - day;
  const owner = { accountIds: new Set(["acct_1"]), environment: "live" };
  const wanted = (from: number, until: number) =>
    file
      .query(`SELECT sum(prompt_tokens + completion_tokens) AS tokens, sum(coalesce(nano_usd, 0)) AS nanoUsd
        FROM usage_records WHERE account_id = 'acct_1' AND environment = 'live' AND at >= ? AND at < ?`)
      .get(from, until) as UsageTotals;
  const inRollups = (from: number, until: number) =>
    file
      .query(`SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens, coalesce(sum(nano_usd), 0) AS nanoUsd
        FROM usage_rollups
        WHERE account_id = 'acct_1' AND environment = 'live' AND span = 'day' AND start >= ? AND start < ?`)
      .get(from, until) as UsageTotals;
  let moments = 0;
  for (; writer.rollups.isBehind; moments++) {
    for (const [from, until] of [
      [since, since + day],
      [since + day, since + 2 * day],
    ] as const) {
      const [later, there] = [writer.rollups.totalOf({ ...owner, since: from, until }), inRollups(from, until)];
      expect({ tokens: later.tokens + there.tokens, nanoUsd: later.nanoUsd + there.nanoUsd }).toEqual(
        wanted(from, until),
      );
    }
    await writer.rollups.goOn();
  }
  expect(moments).toBeGreaterThan(5);
});

test("counts a record once that existed before or comes twice", async () => {
  const writer = await newWriter();
  expect(await writer.insert(batchOf(0))).toBe(500);
  expect(await writer.insert([...batchOf(0), ...batchOf(1), ...batchOf(1)])).toBe(500);
  expect(await writer.insert(batchOf(1))).toBe(0);
  await catchUp(writer);
  expect(rollups()).toEqual(sums());
});

test("finds what is missing once after a crash between any two steps", async () => {
  for (let deathAfter = 0; ; deathAfter++) {
    file.run("DELETE FROM usage_records");
    file.run("DELETE FROM usage_rollups");
    const writer = await newWriter();
    for (const nth of [0, 1]) await writer.insert(batchOf(nth));
    for (let step = 0; step < deathAfter; step++) {
      if (step === 1) await writer.insert(batchOf(2));
      if (writer.rollups.isBehind) await writer.rollups.goOn();
    }
    const wasDone = !writer.rollups.isBehind;
    // The first writer is not closed, as if its process had died.
    const next = await newWriter();
    expect([deathAfter, next.rollups.isBehind, unrolled()]).toEqual([deathAfter, false, 0]);
    expect([deathAfter, rollups()]).toEqual([deathAfter, sums()]);
    if (wasDone) return;
  }
});

test("deletes moved sums in pieces, and does not count them meanwhile, after a crash too", async () => {
  let pieces = 0;
  for (let deathAfter = 0; deathAfter <= pieces; deathAfter++) {
    file.run("DELETE FROM usage_records");
    file.run("DELETE FROM usage_rollups");
    const writer = await newWriter();
    for (let nth = 0; nth < 20; nth++) await writer.insert(batchOf(nth, 250));
    const { rollups: later } = writer;
    while (later.moved < later.gathered) await later.goOn();
    expect(rollups()).toEqual(sums());
    const left = unrolled();
    await writer.insert(batchOf(20));
    for (pieces = 0; pieces < deathAfter && unrolled() > 1; pieces++) await later.goOn();
    expect(unrolled()).toBe(Math.max(left - deathAfter * 16, 0) + 1);
    if (unrolled() > 1) pieces++;
    const next = await newWriter();
    expect([deathAfter, next.rollups.isBehind, unrolled()]).toEqual([deathAfter, false, 0]);
    expect([deathAfter, rollups()]).toEqual([deathAfter, sums()]);
  }
  expect(pieces).toBeGreaterThan(2);
});

test("waits for the present roll-ups only, and lets records and totals pass", async () => {
  const ledger = await openLedger();
  for (let nth = 0; nth < 8; nth++) for (const record of batchOf(nth, 1_000)) ledger.begin(record).settle(record);
  while (ledger.figures.pending > 0) await Bun.sleep(1);
  expect(unrolled()).toBeGreaterThan(1);
  const order: string[] = [];
  const caughtUp = ledger.catchUp().then(() => order.push("roll-ups"));
  const owner = { type: "account", id: "acct_1", environment: "live", since: 0, until: 2_000_000_000 } as const;
  await ledger.readTotals(owner, () => order.push("totals"));
  await caughtUp;
  expect(order).toEqual(["totals", "roll-ups"]);
  expect(rollups()).toEqual(sums());
  await ledger.close();
});

test("answers readers although roll-ups cannot be written, but refuses deletions of records", async () => {
  const ledger = await openLedger();
  for (const record of batchOf(0)) ledger.begin(record).settle(record);
  while (ledger.figures.pending > 0) await Bun.sleep(1);
  file.run("BEGIN IMMEDIATE");
  await ledger.catchUp();
  await expect(ledger.rollUp()).rejects.toThrow(/locked/);
  file.run("ROLLBACK");
  await ledger.rollUp();
  expect(rollups()).toEqual(sums());
  await ledger.close();
});

test("moves gathered sums in time without other activity", async () => {
  const clock = shiftedClock();
  const ledger = await openLedger(clock);
  for (const record of batchOf(0)) ledger.begin(record).settle(record);
  while (ledger.figures.pending > 0) await Bun.sleep(1);
  expect(unrolled()).toBe(1);
  clock.shift(60);
  while (unrolled() > 0) await Bun.sleep(1);
  expect(rollups()).toEqual(sums());
  await ledger.close();
});

test("changes nothing in a failed step, and repeats it later", async () => {
  const writer = await newWriter();
  await writer.insert(batchOf(0));
  while (unrolled() === 1) await writer.rollups.goOn();
  const before = [rollups(), unrolled()];
  file.run("BEGIN IMMEDIATE");
  await expect(writer.rollups.goOn()).rejects.toThrow(/locked/);
  await expect(writer.insert(batchOf(1))).rejects.toThrow(/locked/);
  file.run("ROLLBACK");
  expect([rollups(), unrolled()]).toEqual(before);
  await writer.insert(batchOf(2));
  await catchUp(writer);
  expect(rollups()).toEqual(sums());
  expect(unrolled()).toBe(0);
});

test("does not wait for the roll-ups of many keys to write a record", async () => {
  const ledger = await openLedger();
  for (let nth = 0; nth < 8; nth++) for (const record of batchOf(nth, 1_000)) ledger.begin(record).settle(record);
  await ledger.flush();
  expect(ledger.figures.pending).toBe(0);
  expect(unrolled()).toBeGreaterThan(1);
  await ledger.close();
  expect([rollups(), unrolled()]).toEqual([sums(), 0]);
});

test("gives complete totals at each moment, and waits for roll-ups before reports", async () => {
  const ledger = await openLedger();
  let records: UsageRecord[] = [];
  const serve = (nth: number) => {
    const batch = batchOf(nth);
    for (const record of batch) ledger.begin(record).settle(record);
    records = [...records, ...batch];
  };
  const wanted = { environment: "live", since: 1_799_884_800, until: 1_800_144_000 };
  const totalsAreRight = async () => {
    for (const [type, id] of [
      ["account", "acct_1"],
      ["key", recordOf(1).keyId],
    ] as const) {
      let found: SpanTotals | undefined;
      await ledger.readTotals({ type, id, ...wanted }, (totals) => {
        found = totals;
      });
      const own = records.filter(
        (record) => record.environment === "live" && (type === "account" ? record.accountId : record.keyId) === id,
      );
      const tokens = own.reduce((sum, record) => sum + record.promptTokens + record.completionTokens, 0);
      const nanoUsd = own.reduce((sum, record) => sum + (record.nanoUsd ?? 0), 0);
      expect(found).toMatchObject({ requests: own.length, tokens, nanoUsd });
    }
  };
  const drained = async () => {
    const count = () => (file.query("SELECT count(*) AS n FROM usage_records").get() as { n: number }).n;
    while (count() < records.length) await Bun.sleep(1);
  };
  serve(0);
  await totalsAreRight();
  await drained();
  expect(unrolled()).toBe(1);
  await totalsAreRight();
  serve(1);
  await totalsAreRight();
  await ledger.flush();
  await ledger.catchUp();
  expect(rollups()).toEqual(sums());
  await totalsAreRight();
  serve(2);
  await drained();
  await ledger.catchUp();
  expect([rollups(), unrolled()]).toEqual([sums(), 0]);
  serve(3);
  await ledger.close();
  expect([rollups(), unrolled()]).toEqual([sums(), 0]);
});
