// The usage that counts against rate limits after a restart: that of current windows, and nothing from the future.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../tests/support/databases.ts";
import { keyRecordFor } from "../../tests/support/principal.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import { type Database, openDatabase } from "../storage/sql/database.ts";
import { migrationsFor } from "../storage/sql/migrations.ts";
import { SqlAccountStore } from "../storage/tables/account-store.ts";
import { SqlKeyStore } from "../storage/tables/key-store.ts";
import { recentUsage } from "./recent-usage.ts";
import { openUsageWriter, type UsageWriter } from "./usage/usage-writer.ts";

const now = 1_800_000_000;

let opened: TestDatabase;
let db: Database;
let accountId: string;
let writer: UsageWriter;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    writer = await openUsageWriter(db);
    accountId = await new SqlAccountStore(db).ensureFirstAccount(now);
  });

  afterEach(async () => {
    writer.close();
    await opened.close();
  });

  /** Records one request at each time, of 10 and 5 tokens. */
  async function use(...times: readonly number[]): Promise<void> {
    const record = (at: number, index: number): UsageRecord => ({
      requestId: `req_${at}_${index}`,
      at,
      accountId,
      keyId: "key_1",
      appId: null,
      environment: "live",
      operation: "chat",
      model: "m",
      stream: false,
      promptTokens: 10,
      completionTokens: 5,
      estimated: false,
      outcome: "completed",
      errorCode: null,
      nanoUsd: null,
      capped: false,
      upstream: null,
      durationMs: 1,
      firstTokenMs: null,
      queueMs: 0,
    });
    await writer.insert(times.map(record));
  }

  async function timesAt(nowSeconds: number): Promise<number[]> {
    return (await recentUsage(db, nowSeconds)).map(({ at }) => at - now).sort((a, b) => a - b);
  }

  test("returns usage of the last 61 s by key and second", async () => {
    await use(now, now, now - 61, now - 62, now - 3_600);
    expect((await recentUsage(db, now)).sort((a, b) => a.at - b.at)).toEqual([
      { keyId: "key_1", at: now - 61, requests: 1, tokens: 15 },
      { keyId: "key_1", at: now, requests: 2, tokens: 30 },
    ]);
  });

  test("returns usage as far back as the longest window of the account's keys", async () => {
    const key = keyRecordFor({ accountId, rateLimit: 5, rateLimitWindow: 3_600 });
    await new SqlKeyStore(db).insertKey(key, {
      id: "audit_1",
      at: now,
      action: "key.created",
      actor: { type: "operator" },
      accountId,
      targetId: key.id,
      clientAddress: null,
      requestId: null,
      detail: {},
    });
    await use(now, now - 3_601, now - 3_602);
    expect(await timesAt(now)).toEqual([-3_601, 0]);
  });

  test("ignores usage in the future after the clock was set back", async () => {
    await use(now - 30, now, now + 1, now + 30, now + 86_400);
    expect(await timesAt(now)).toEqual([-30, 0]);
    expect(await timesAt(now + 30)).toEqual([-30, 0, 1, 30]);
  });

  databases.only("sqlite", "finds recent usage in a database of the previous version, indexed by account", async () => {
    const file = join(opened.directory, "old.db");
    const old = new Sqlite(file, { create: true });
    old.run("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)");
    for (const [i, step] of migrationsFor("sqlite").slice(0, 2).entries()) {
      for (const statement of step) old.run(statement);
      old.run("INSERT INTO schema_migrations VALUES (?, 1)", [i + 1]);
    }
    old.run(
      `INSERT INTO usage_records (request_id, at, account_id, key_id, environment, operation, model, outcome, prompt_tokens,
      completion_tokens, estimated, duration_ms) VALUES ('a', ?, 'acct_1', 'key_1', 'live', 'chat', 'm', 'completed', 3, 4, 0, 1)`,
      [now - 5],
    );
    old.close();
    const upgraded = await openDatabase(file);
    expect(await recentUsage(upgraded, now)).toEqual([{ keyId: "key_1", at: now - 5, requests: 1, tokens: 7 }]);
    const indexes: { name: string }[] = await upgraded`
    SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'usage_records' AND sql IS NOT NULL`;
    expect(indexes.map(({ name }) => name)).toContain("usage_records_by_time");
    expect(indexes.map(({ name }) => name)).not.toContain("usage_records_by_account");
    await upgraded.close();
  });

  test("returns usage of an account with longer windows apart, each second once", async () => {
    const longer = await new SqlAccountStore(db).ensureFirstAccount(now);
    const key = keyRecordFor({ accountId: longer, rateLimit: 5, rateLimitWindow: 600 });
    await new SqlKeyStore(db).insertKey(key, {
      id: "audit_1",
      at: now,
      action: "key.created",
      actor: { type: "operator" },
      accountId: longer,
      targetId: key.id,
      clientAddress: null,
      requestId: null,
      detail: {},
    });
    await use(now, now - 61, now - 62, now - 500);
    accountId = "acct_other";
    await use(now - 2, now - 63, now - 501);
    expect(await timesAt(now)).toEqual([-500, -62, -61, -2, 0]);
  });
});
