// Writing usage into the database: every field of every row, each record once, and a whole batch or nothing.
import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, refuseRecord, type TestDatabase } from "../../../tests/support/databases.ts";
import { type UsageRecord, usageOutcomes } from "../../domain/usage/usage.ts";
import type { Database } from "../../storage/sql/database.ts";
import { catchUp } from "./usage-rows.ts";
import { openUsageWriter, type UsageWriter } from "./usage-writer.ts";

let opened: TestDatabase;
let db: Database;
let writer: UsageWriter;

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    writer = await openUsageWriter(db);
  });

  afterEach(async () => {
    writer.close();
    await opened.close();
  });

  /** Makes records that all differ. The values that many records share have `kinds` different combinations. */
  function recordOf(i: number, kinds: number): UsageRecord {
    const kind = i % kinds;
    return {
      requestId: `req_${i}`,
      at: 1_800_000_000 + i * 60,
      accountId: `acct_${kind % 2}`,
      keyId: `key_${kind % 3}`,
      appId: kind % 4 === 0 ? `app_${kind}` : null,
      environment: kind % 5 === 0 ? "test" : "live",
      operation: kind % 3 === 0 ? "embedding" : "chat",
      model: `mödel ${kind % 6}`,
      stream: kind % 2 === 0,
      outcome: usageOutcomes[kind % usageOutcomes.length] ?? "completed",
      errorCode: kind % 4 === 1 ? "upstream_error" : null,
      promptTokens: i,
      completionTokens: 10_000 + i,
      parts: partsOf(i),
      estimated: kind % 7 === 0,
      nanoUsd: i % 3 === 0 ? null : 5_000_000_000 + i,
      capped: kind % 8 === 0,
      upstream: kind % 3 === 0 ? null : `up ${kind % 4}`,
      durationMs: 20_000 + i,
      firstTokenMs: i % 2 === 0 ? null : i % 3 === 0 ? 20_000 + i : 3_000 + i,
      queueMs: 40_000 + i,
    };
  }

  /** Makes token parts: none for some records, without details for others, and with all details for the rest. */
  function partsOf(i: number): UsageRecord["parts"] {
    if (i % 3 === 0) return undefined;
    const reported = { cachedTokens: i % 5, cacheWriteTokens: i % 2, reasoningTokens: 1 + (i % 7) };
    if (i % 3 === 1) return reported;
    return { ...reported, details: { cacheWriteHourTokens: i, searches: 2, served: ["flex", "us"], billedNanoUsd: i } };
  }

  async function stored(): Promise<UsageRecord[]> {
    const rows: Record<string, string | number | null>[] = await db`SELECT * FROM usage_records ORDER BY prompt_tokens`;
    return rows.map((row) => ({
      requestId: row["request_id"],
      at: Number(row["at"]),
      accountId: row["account_id"],
      keyId: row["key_id"],
      appId: row["app_id"],
      environment: row["environment"],
      operation: row["operation"],
      model: row["model"],
      stream: row["stream"] === 1,
      outcome: row["outcome"],
      errorCode: row["error_code"],
      promptTokens: Number(row["prompt_tokens"]),
      completionTokens: Number(row["completion_tokens"]),
      parts:
        Number(row["reasoning_tokens"]) === 0
          ? undefined
          : {
              cachedTokens: Number(row["cached_tokens"]),
              cacheWriteTokens: Number(row["cache_write_tokens"]),
              reasoningTokens: Number(row["reasoning_tokens"]),
              ...(row["details"] == null ? {} : { details: JSON.parse(String(row["details"])) }),
            },
      estimated: row["estimated"] === 1,
      nanoUsd: row["nano_usd"] == null ? null : Number(row["nano_usd"]),
      capped: row["capped"] === 1,
      upstream: row["upstream"],
      durationMs: Number(row["duration_ms"]),
      firstTokenMs: row["first_token_ms"] == null ? null : Number(row["first_token_ms"]),
      queueMs: Number(row["queue_ms"]),
    })) as UsageRecord[];
  }

  /** Returns the roll-ups in the database, and the expected ones computed from the records. */
  async function rollups(): Promise<{ found: unknown[]; expected: unknown[] }> {
    await catchUp(writer);
    const found = [...(await db`SELECT * FROM usage_rollups`)];
    const expected = [
      ...(await db`
      SELECT account_id, environment, span, at - at % seconds AS start, key_id, coalesce(app_id, '') AS app_id, model,
        count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
        coalesce(sum(nano_usd), 0) AS nano_usd, sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS errors,
        count(first_token_ms) AS timed, coalesce(sum(first_token_ms), 0) AS first_token_ms,
        coalesce(sum(CASE WHEN duration_ms > first_token_ms THEN CASE WHEN completion_tokens > 1 THEN completion_tokens - 1 ELSE 0 END END), 0) AS generated_tokens,
        coalesce(sum(CASE WHEN duration_ms > first_token_ms THEN duration_ms - first_token_ms ELSE 0 END), 0) AS generation_ms, min(at) AS first_at, max(at) AS last_at,
        sum(cached_tokens) AS cached_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        sum(reasoning_tokens) AS reasoning_tokens, sum(CASE WHEN nano_usd IS NULL THEN 1 ELSE 0 END) AS unpriced
      FROM usage_records, (SELECT 'hour' AS span, 3600 AS seconds UNION ALL SELECT 'day', 86400) AS spans
      GROUP BY 1, 2, 3, 4, 5, 6, 7`),
    ];
    const inOrder = (rows: unknown[]) => rows.map((row) => JSON.stringify(row)).sort();
    return { found: inOrder(found), expected: inOrder(expected) };
  }

  test.each([1, 2, 7, 8, 9, 63, 64, 65, 72, 137, 1_000])("stores every field of each of %d records", async (count) => {
    for (const kinds of [1, 5, 60]) {
      await db`DELETE FROM usage_records`;
      await db`DELETE FROM usage_rollups`;
      const records = Array.from({ length: count }, (_, i) => recordOf(i, kinds));
      expect(await writer.insert(records)).toBe(count);
      expect(await stored()).toEqual(records);
      const { found, expected } = await rollups();
      expect(found).toEqual(expected);
    }
  });

  test("counts a record once that existed before or comes twice, as it first came", async () => {
    const records = Array.from({ length: 300 }, (_, i) => recordOf(i, 7));
    expect(await writer.insert(records.slice(100, 200))).toBe(100);
    const again = records.slice(0, 10).map((record) => ({ ...record, promptTokens: 1e6 }));
    expect(await writer.insert([...records, ...again])).toBe(200);
    expect(await writer.insert(records)).toBe(0);
    expect(await stored()).toEqual(records);
    const { found, expected } = await rollups();
    expect(found).toEqual(expected);
  });

  test("leaves nothing of a batch that fails in its last row, and writes the next one", async () => {
    const lift = await refuseRecord(db, "req_99");
    const records = Array.from({ length: 100 }, (_, i) => recordOf(i, 1));
    await expect(writer.insert(records)).rejects.toThrow("refused");
    expect(await stored()).toEqual([]);
    expect((await rollups()).found).toEqual([]);
    await lift();
    expect(await writer.insert(records)).toBe(100);
  });

  databases.only("postgres", "adds the records of several processes to the same roll-ups, in any order", async () => {
    const others = await Promise.all([opened.openAgain(), opened.openAgain(), opened.openAgain()]);
    const writers = [writer, ...(await Promise.all(others.map((other) => openUsageWriter(other))))];
    const records = Array.from({ length: 1_600 }, (_, i) => recordOf(i, 60));
    const added = await Promise.all(
      writers.map(async (one, w) => {
        const own = records.filter((_, i) => i % writers.length === w);
        const ordered = w % 2 === 0 ? own : own.toReversed();
        let count = 0;
        for (let from = 0; from < ordered.length; from += 40) {
          count += await one.insert(ordered.slice(from, from + 40), 10_000);
        }
        return count;
      }),
    );
    expect(added).toEqual([400, 400, 400, 400]);
    const { found, expected } = await rollups();
    expect(found).toEqual(expected);
    for (const one of writers.slice(1)) one.close();
  });

  databases.only(
    "postgres",
    "replaces characters of a model name that PostgreSQL cannot store, and stores the others",
    async () => {
      const odd = ["a\0b", "half \ud83d", "whole \ud83d\ude00"];
      const records = odd.map((model, i) => ({ ...recordOf(i, 3), model, upstream: null }));
      expect(await writer.insert(records)).toBe(3);
      expect((await stored()).map(({ model }) => model)).toEqual(["a\ufffdb", "half \ufffd", "whole \ud83d\ude00"]);
      expect(await writer.insert(records)).toBe(0);
    },
  );

  databases.only("sqlite", "never waits for a lock inside SQLite, which would block the serving thread", async () => {
    const other = new Sqlite(join(opened.directory, "headrace.db"));
    other.run("BEGIN IMMEDIATE");
    const triesMs: number[] = [];
    for (let i = 0; i < 10; i++) {
      const started = performance.now();
      // Measures the synchronous part, up to the first `await`: one attempt.
      const tried = writer.insert([recordOf(1, 1)], 0);
      triesMs.push(performance.now() - started);
      await expect(tried).rejects.toThrow(/locked/);
    }
    other.close();
    expect(Math.min(...triesMs)).toBeLessThan(5);
  });

  databases.only("sqlite", "waits for a transaction of this or another process up to the given time", async () => {
    const other = new Sqlite(join(opened.directory, "headrace.db"));
    other.run("BEGIN IMMEDIATE");
    await expect(writer.insert([recordOf(1, 1)], 5)).rejects.toThrow(/locked/);
    const waiting = writer.insert([recordOf(1, 1)], 10_000);
    await Bun.sleep(30);
    other.run("COMMIT");
    other.close();
    expect(await waiting).toBe(1);
    const entered = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const transaction = db.begin("IMMEDIATE", async (tx) => {
      await tx`INSERT INTO accounts (id, name, tier, created_at) VALUES ('a', 'a', 'free', 1)`;
      entered.resolve();
      await end.promise;
    });
    await entered.promise;
    const behind = writer.insert([recordOf(2, 1)], 10_000);
    end.resolve();
    await transaction;
    expect(await behind).toBe(1);
  });

  databases.only("sqlite", "leaves another writer's IMMEDIATE transaction intact", async () => {
    const [inside, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const change = db.begin("IMMEDIATE", async (tx) => {
      await tx`SELECT count(*) FROM usage_records`;
      inside.resolve();
      await done.promise;
      await tx`INSERT INTO accounts (id, name, tier, created_at) VALUES ('a', 'a', 'free', 1)`;
    });
    await inside.promise;
    const written = writer.insert([recordOf(1, 1)], 10_000);
    await Bun.sleep(10);
    done.resolve();
    await change;
    await written;
    const [accounts] = await db`SELECT count(*) AS n FROM accounts`;
    expect([Number(accounts.n), (await stored()).length]).toEqual([1, 1]);
  });
});
