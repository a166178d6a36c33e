// Usage records: batched, written once each, kept through failures.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log, LogFields } from "../domain/log.ts";
import type { UsageRecord } from "../domain/usage.ts";
import { type Database, openDatabase } from "./database.ts";
import { SqlUsageStore } from "./usage-store.ts";

let directory: string;
let db: Database;
let store: SqlUsageStore;
let errors: { event: string; fields: LogFields | undefined }[];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-usage-"));
  db = await openDatabase(join(directory, "headrace.db"));
  errors = [];
  const ignore = () => {};
  const log: Log = { info: ignore, warn: ignore, error: (event, fields) => void errors.push({ event, fields }) };
  store = new SqlUsageStore(db, log);
});

afterEach(async () => {
  await store.flush();
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

function usage(requestId: string, more: Partial<UsageRecord> = {}): UsageRecord {
  return {
    requestId,
    at: 1_800_000_000,
    accountId: "acct_1",
    keyId: "key_1",
    environment: "dev",
    operation: "chat",
    model: "m",
    outcome: "completed",
    promptTokens: 7,
    completionTokens: 2,
    estimated: false,
    cost: null,
    durationMs: 12.6,
    ...more,
  };
}

async function rows(): Promise<Record<string, unknown>[]> {
  return [...(await db`SELECT * FROM usage_records ORDER BY request_id`)];
}

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`Not in time: ${what}`);
    await Bun.sleep(10);
  }
}

test("every field arrives as it was recorded, the duration in whole milliseconds", async () => {
  store.record(usage("a", { cost: 0.001_234_5, estimated: true, outcome: "cancelled", operation: "embedding" }));
  await store.flush();
  expect(await rows()).toEqual([
    {
      request_id: "a",
      at: 1_800_000_000,
      account_id: "acct_1",
      key_id: "key_1",
      environment: "dev",
      operation: "embedding",
      model: "m",
      outcome: "cancelled",
      prompt_tokens: 7,
      completion_tokens: 2,
      estimated: 1,
      cost: 0.001_234_5,
      duration_ms: 13,
    },
  ]);
});

test("a record is written by itself soon after, without anybody flushing", async () => {
  store.record(usage("a"));
  expect(await rows()).toEqual([]);
  await until(async () => (await rows()).length === 1, "the record is written");
});

test("thousands at once are all written, whatever the size of a batch", async () => {
  for (let i = 0; i < 2_345; i++) store.record(usage(`r${i}`));
  await store.flush();
  expect(await rows()).toHaveLength(2_345);
});

describe("idempotence", () => {
  test("a request id is written once, the first record stands: within a batch, across batches, across stores", async () => {
    store.record(usage("a", { promptTokens: 1 }));
    store.record(usage("a", { promptTokens: 2 }));
    await store.flush();
    store.record(usage("a", { promptTokens: 3 }));
    store.record(usage("b"));
    await store.flush();
    const other = new SqlUsageStore(db, { info() {}, warn() {}, error() {} });
    other.record(usage("a", { promptTokens: 4 }));
    await other.flush();
    expect((await rows()).map((row) => [row["request_id"], row["prompt_tokens"]])).toEqual([
      ["a", 1],
      ["b", 7],
    ]);
  });

  test("flushing twice at once writes nothing twice and loses nothing", async () => {
    for (let i = 0; i < 600; i++) store.record(usage(`a${i}`));
    const flushes = [store.flush(), store.flush()];
    for (let i = 0; i < 600; i++) store.record(usage(`b${i}`));
    await Promise.all([...flushes, store.flush()]);
    expect(await rows()).toHaveLength(1_200);
    expect(errors).toEqual([]);
  });
});

describe("a database that fails", () => {
  test("keeps the records, says so without their content, and writes them once it works again", async () => {
    await db.unsafe("ALTER TABLE usage_records RENAME TO gone");
    for (let i = 0; i < 700; i++) store.record(usage(`a${i}`, { model: "CANARY" }));
    await store.flush();
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ event: "usage_write_failed", fields: { pending: 700, lost: 0 } });
    expect(JSON.stringify(errors)).not.toContain("CANARY");
    store.record(usage("later"));
    await db.unsafe("ALTER TABLE gone RENAME TO usage_records");
    await store.flush();
    expect(await rows()).toHaveLength(701);
  });

  test("is tried again by itself", async () => {
    await db.unsafe("ALTER TABLE usage_records RENAME TO gone");
    store.record(usage("a"));
    await store.flush();
    expect(errors).toHaveLength(1);
    await db.unsafe("ALTER TABLE gone RENAME TO usage_records");
    await until(async () => (await rows()).length === 1, "the record is written at the next try");
  });

  test("costs the oldest records, and says how many, only when 100,000 wait", async () => {
    await db.unsafe("ALTER TABLE usage_records RENAME TO gone");
    for (let i = 0; i < 100_010; i++) store.record(usage(`a${i}`));
    await store.flush();
    expect(errors[0]?.fields).toMatchObject({ pending: 100_000, lost: 10 });
    await db.unsafe("ALTER TABLE gone RENAME TO usage_records");
    // What waits is dropped here: writing it out would only take time.
    await db.unsafe("DROP TABLE usage_records");
    await db.unsafe("CREATE TABLE usage_records (request_id TEXT PRIMARY KEY)");
  });
});
