// The drain when the disk and its own memory are full: every settled record still gets into the database.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeSync } from "node:fs";
import { join } from "node:path";
import { sqliteDatabases, type TestDatabase } from "../../tests/support/databases.ts";
import { usageBegin } from "../../tests/support/usage-begin.ts";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { UsageEnd } from "../domain/usage/usage.ts";
import { requestsKeptFrom } from "../storage/tables/retention-store.ts";
import { LedgerDrain } from "./ledger-drain.ts";
import { LedgerJournal } from "./ledger-journal.ts";
import { prepareSpoolDirectory, Spool, type WriteToDisk } from "./spool.ts";
import { openUsageWriter, type UsageWriter } from "./usage/usage-writer.ts";

const databases = sqliteDatabases();
let errors: string[] = [];
const log: Log = { info: () => {}, warn: () => {}, error: (event) => void errors.push(event) };
const end: UsageEnd = {
  ...{ promptTokens: 7, completionTokens: 2, estimated: false, outcome: "completed", errorCode: null },
  ...{ nanoUsd: 1_000, capped: false, upstream: "up", durationMs: 12, firstTokenMs: 3, queueMs: 0 },
};

let opened: TestDatabase;
let spool: Spool;
let writer: UsageWriter;
let journal: LedgerJournal;
let drain: LedgerDrain;
let isDiskFull: boolean;

beforeEach(async () => {
  opened = await databases.open();
  isDiskFull = false;
  errors = [];
  const directory = join(opened.directory, "spool");
  prepareSpoolDirectory(directory);
  const write: WriteToDisk = (...given) => {
    if (isDiskFull) throw Object.assign(new Error("The disk is full."), { code: "ENOSPC" });
    return writeSync(...given);
  };
  spool = new Spool({ directory, clock: systemClock, segmentBytes: 1e9, write });
  writer = await openUsageWriter(opened.db);
  journal = new LedgerJournal({
    spool,
    log,
    clock: systemClock,
    onSettled: (usage, row, segment, isSpooled) => drain.add(usage, row, segment, isSpooled),
    onTurn: () => {},
  });
  drain = new LedgerDrain({ db: opened.db, writer, log, spool, journal, maxPending: 1 });
});

afterEach(async () => {
  writer.close();
  await spool.close();
  await opened.close();
});

async function booked(): Promise<string[]> {
  const found: { request_id: string }[] = await opened.db`SELECT request_id FROM usage_records ORDER BY request_id`;
  return found.map(({ request_id }) => request_id);
}

test("bounds the records in memory while the spool has them", async () => {
  const entries = ["a", "b", "c"].map((requestId) => journal.begin({ ...usageBegin, requestId }, 0));
  await Promise.all(entries.map(({ begun }) => begun));
  await Promise.all(entries.map((entry) => entry.settle(end)));
  expect(drain.pending).toBe(1);
  await drain.drain();
  expect(await booked()).toEqual(["a", "b", "c"]);
});

test("does not count a record as only in memory once the spool has it after all", async () => {
  const entry = journal.begin({ ...usageBegin, requestId: "a" }, 0);
  await entry.begun;
  isDiskFull = true;
  await entry.settle(end);
  expect(drain.unspooled).toBe(1);
  isDiskFull = false;
  drain.respool();
  expect(drain.unspooled).toBe(0);
  await drain.drain();
  expect([drain.unspooled, await booked()]).toEqual([0, ["a"]]);
});

test("keeps a record that the full disk refused above the memory bound until the database has it", async () => {
  const entries = ["a", "b", "c"].map((requestId) => journal.begin({ ...usageBegin, requestId }, 0));
  await Promise.all(entries.map(({ begun }) => begun));
  isDiskFull = true;
  await Promise.all(entries.map((entry) => entry.settle(end)));
  expect([drain.pending, drain.unspooled]).toEqual([3, 3]);
  await drain.drain();
  expect(await booked()).toEqual(["a", "b", "c"]);
  expect(drain.waiting).toBe(0);
});

/** Settles a request and writes it into the database. */
async function book(requestId: string, at = usageBegin.at): Promise<void> {
  const entry = journal.begin({ ...usageBegin, requestId, at }, 0);
  await entry.begun;
  await entry.settle(end);
  await drain.drain();
}

test.each([
  ["logs a database that lost records while it was away", true, false, ["database_went_back"]],
  [
    "logs a database that lost records, though an earlier one was too old to be kept",
    true,
    true,
    ["database_went_back"],
  ],
  ["logs nothing of a database that was away and has all records", false, true, []],
])("%s", async (_, loses, hasTooOld, logged) => {
  await opened.db`INSERT INTO installation (name, value) VALUES (${requestsKeptFrom}, ${String(usageBegin.at)})`;
  if (hasTooOld) await book("old", usageBegin.at - 1);
  await book("a");
  await opened.db`ALTER TABLE usage_records RENAME TO away`;
  await expect(book("b")).rejects.toThrow("usage_records");
  if (loses) await opened.db`DELETE FROM away`;
  await opened.db`ALTER TABLE away RENAME TO usage_records`;
  await book("c");
  expect(errors).toEqual(logged);
});
