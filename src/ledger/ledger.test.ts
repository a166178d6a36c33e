// The ledger while its process lives: each request is once in records and roll-ups, whatever fails meanwhile.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { onEachDatabase, refuseRecord, type TestDatabase } from "../../tests/support/databases.ts";
import { withinMs } from "../../tests/support/long.ts";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { systemClock } from "../base/clock.ts";
import { whenSettled } from "../base/deferred.ts";
import { GatewayError, StartError } from "../base/errors.ts";
import type { Log, LogFields } from "../base/log.ts";
import type { Trail } from "../domain/usage/trail.ts";
import type { LedgerEntry, UsageBegin, UsageEnd, UsageTotals } from "../domain/usage/usage.ts";
import { type Database, waitBriefly, writing } from "../storage/sql/database.ts";
import { putInstallation } from "../storage/sql/installation.ts";
import { SpoolLedger, type SpoolLedgerOptions } from "./ledger.ts";
import { recoverSpool } from "./ledger-recovery.ts";
import { SqlRequestLog } from "./request-log.ts";
import { prepareSpoolDirectory, Spool } from "./spool.ts";
import { SpoolEncoder } from "./spool-encoder.ts";
import type { SpoolLine } from "./spool-format.ts";
import { readSegment } from "./spool-reader.ts";
import { UsageColumns } from "./usage/usage-columns.ts";
import { requestKindOf } from "./usage/usage-kinds.ts";
import { openUsageWriter } from "./usage/usage-writer.ts";

let opened: TestDatabase;
let root: string;
let directory: string;
let db: Database;
let logged: { event: string; fields: LogFields | undefined }[];
const ledgers: SpoolLedger[] = [];
const later: (() => unknown)[] = [];

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db, directory: root } = opened);
    directory = join(root, "spool");
    await waitBriefly(db);
    logged = [];
  });

  afterEach(async () => {
    for (const ledger of ledgers.splice(0)) await ledger.close();
    for (const undo of later.splice(0).reverse()) await undo();
    await opened.close();
  });

  const keep = (event: string, fields?: LogFields) => void logged.push({ event, fields });
  const log: Log = { info: keep, warn: keep, error: keep };
  const events = () => logged.map(({ event }) => event);
  /** Maintenance runs at any time, and fails if the disk or the database does, so its events are left out. */
  const withoutMaintenance = () => events().filter((event) => event !== "ledger_upkeep_failed");

  async function open(more: Partial<SpoolLedgerOptions> = {}): Promise<SpoolLedger> {
    const ledger = await SpoolLedger.open({ db, directory, log, clock: systemClock, drainMs: 5, ...more });
    ledgers.push(ledger);
    return ledger;
  }

  function beginOf(requestId: string, more: Partial<UsageBegin> = {}): UsageBegin {
    return {
      requestId,
      at: 1_800_000_000,
      accountId: "acct_1",
      keyId: "key_1",
      appId: null,
      environment: "live",
      operation: "chat",
      model: "m",
      stream: false,
      ...more,
    };
  }

  function endOf(more: Partial<UsageEnd> = {}): UsageEnd {
    return {
      promptTokens: 7,
      completionTokens: 2,
      estimated: false,
      outcome: "completed",
      errorCode: null,
      nanoUsd: 1_000,
      capped: false,
      upstream: "up",
      durationMs: 12.6,
      firstTokenMs: 3.2,
      queueMs: 0,
      ...more,
    };
  }

  async function rows(): Promise<Record<string, unknown>[]> {
    const found: Record<string, unknown>[] = await db`SELECT * FROM usage_records ORDER BY request_id`;
    // PostgreSQL returns large integers as texts.
    return found.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, /^\d+$/.test(String(value)) ? Number(value) : value]),
      ),
    );
  }

  async function count(): Promise<number> {
    const [row] = await db`SELECT count(*) AS n FROM usage_records`;
    return Number(row.n);
  }

  /** Returns the differences between the roll-ups and the sums of the records. There should be none. */
  async function rollupErrors(): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (const [span, seconds] of [
      ["hour", 3_600],
      ["day", 86_400],
    ]) {
      const sums = await db`
      SELECT account_id, environment, ${span} AS span, at - at % ${seconds} AS start, key_id, coalesce(app_id, '') AS app_id,
        model, count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
        sum(coalesce(nano_usd, 0)) AS nano_usd, sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS errors,
        count(first_token_ms) AS timed, coalesce(sum(first_token_ms), 0) AS first_token_ms,
        coalesce(sum(CASE WHEN duration_ms > first_token_ms THEN CASE WHEN completion_tokens > 1 THEN completion_tokens - 1 ELSE 0 END END), 0) AS generated_tokens,
        coalesce(sum(CASE WHEN duration_ms > first_token_ms THEN duration_ms - first_token_ms ELSE 0 END), 0) AS generation_ms, min(at) AS first_at, max(at) AS last_at,
        sum(cached_tokens) AS cached_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        sum(reasoning_tokens) AS reasoning_tokens, sum(CASE WHEN nano_usd IS NULL THEN 1 ELSE 0 END) AS unpriced
      FROM usage_records GROUP BY 1, 2, 4, 5, 6, 7 ORDER BY 1, 2, 4, 5, 6, 7`;
      const rollups = await db`
      SELECT * FROM usage_rollups WHERE span = ${span} ORDER BY account_id, environment, start, key_id, app_id, model`;
      if (!Bun.deepEquals([...sums], [...rollups])) errors.push({ span, sums: [...sums], rollups: [...rollups] });
    }
    return errors;
  }

  async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const endMs = performance.now() + 10_000;
    while (!(await condition())) {
      if (performance.now() > endMs) throw new Error(`Not in time: ${what}`);
      await Bun.sleep(5);
    }
  }

  /** Resolves after all callbacks of sockets and promises in this tick of the event loop. */
  function nextTurn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Begins and settles requests, `perTurn` in each tick of the event loop. */
  async function serve(ledger: SpoolLedger, prefix: string, count: number, perTurn = 2): Promise<void> {
    for (let i = 0; i < count; i++) {
      ledger.begin(beginOf(`${prefix}${i}`)).settle(endOf());
      if (i % perTurn === perTurn - 1) await nextTurn();
    }
  }

  /** Returns the lines that are in the spool now. */
  function spooled(): SpoolLine[] {
    return readdirSync(directory)
      .filter((name) => name.endsWith(".spool"))
      .sort()
      .flatMap((name) => [...readSegment(join(directory, name))].flatMap((chunk) => chunk.lines));
  }

  /** Waits until the condition holds, and checks it once in each tick of the event loop. */
  async function turnsUntil(condition: () => Promise<boolean>): Promise<void> {
    for (let turn = 0; !(await condition()); turn++) {
      if (turn > 1_000) throw new Error("It does not come.");
      await nextTurn();
    }
  }

  /** Makes the database refuse usage until the returned function is called. */
  async function lockDatabase(): Promise<() => Promise<void>> {
    const unlock = await opened.refuseUsage();
    later.push(unlock);
    return unlock;
  }

  test("stores every field of a record, with durations in whole milliseconds", async () => {
    const ledger = await open();
    const begin = beginOf("a", { appId: "app_1", environment: "test", operation: "embedding", stream: true });
    const entry = ledger.begin(begin);
    entry.progress({ promptTokens: 1, completionTokens: 1, estimated: true }, 5);
    entry.settle(
      endOf({ outcome: "failed", errorCode: "upstream_error", capped: true, estimated: true, queueMs: 4.4 }),
    );
    await ledger.flush();
    expect(await rows()).toEqual([
      {
        request_id: "a",
        at: 1_800_000_000,
        account_id: "acct_1",
        key_id: "key_1",
        app_id: "app_1",
        environment: "test",
        operation: "embedding",
        model: "m",
        stream: 1,
        outcome: "failed",
        error_code: "upstream_error",
        prompt_tokens: 7,
        completion_tokens: 2,
        estimated: 1,
        nano_usd: 1_000,
        capped: 1,
        upstream: "up",
        duration_ms: 13,
        first_token_ms: 3,
        queue_ms: 4,
        trail: null,
        ...{ cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, details: null, tags: null },
      },
    ]);
    expect(await rollupErrors()).toEqual([]);
  });

  test("stores parts of tokens from the spool too, with rarely reported ones", async () => {
    const parts = { cachedTokens: 5, cacheWriteTokens: 1, reasoningTokens: 2 };
    const details = { cacheWriteHourTokens: 1, inputAudioTokens: 3, searches: 2, served: ["flex"], billedNanoUsd: 12 };
    const ledger = await open({ drainMs: 3_600_000 });
    for (const [id, reported] of [
      ["a", { ...parts, details }],
      ["b", parts],
      ["c", undefined],
    ] as const) {
      const entry = ledger.begin(beginOf(id));
      await entry.begun;
      await entry.settle(endOf({ parts: reported }));
    }
    // The copy is the spool that a process killed here would leave: its records are only in the spool.
    const copy = join(root, "copy");
    cpSync(directory, copy, { recursive: true });
    await open({ directory: copy });
    const found = await rows();
    expect(found.map((row) => [row["cached_tokens"], row["cache_write_tokens"], row["reasoning_tokens"]])).toEqual([
      [5, 1, 2],
      [5, 1, 2],
      [0, 0, 0],
    ]);
    expect(found.map(({ details: text }) => text && JSON.parse(String(text)))).toEqual([details, null, null]);
    expect(await rollupErrors()).toEqual([]);
  });

  describe("the trail of a record", () => {
    const trail: Trail = [
      {
        ...{ upstream: "one", upstreamModel: "m:7b", model: "m", result: "refused", status: 500 },
        ...{ reason: 'it said "no", \u00e9 and \ud83d\ude80', startedMs: 0, durationMs: 12 },
      },
      {
        ...{ upstream: "two", upstreamModel: "m", model: "m", result: "answered", status: null },
        ...{ reason: null, startedMs: 12, durationMs: 30 },
      },
    ];
    const owner = { accountId: "acct_1", environment: "live" } as const;
    const find = (requestId: string) => new SqlRequestLog(db, systemClock).find(owner, requestId);

    test("stores a trail only with its record, and deletes it with the record", async () => {
      const ledger = await open();
      ledger.begin(beginOf("a")).settle(endOf({}));
      ledger.begin(beginOf("b")).settle(endOf({ trail }));
      ledger.begin(beginOf("c")).settle(endOf({}));
      await ledger.flush();
      expect((await find("b"))?.trail).toEqual(trail);
      expect([(await find("a"))?.trail, (await find("c"))?.trail]).toEqual([undefined, undefined]);
      expect(await rollupErrors()).toEqual([]);
    });

    test("keeps a trail through a crash with its record", async () => {
      prepareSpoolDirectory(directory);
      const encoder = new SpoolEncoder();
      encoder.settle(UsageColumns.of([{ ...beginOf("b"), ...endOf({ trail }) }]), 0);
      const spool = new Spool({ directory, clock: systemClock, segmentBytes: 1e9 });
      spool.current.pins++;
      spool.append(encoder.take());
      await spool.close();
      await open();
      expect((await find("b"))?.trail).toEqual(trail);
    });
  });

  test("stores unknown values as null", async () => {
    const ledger = await open();
    ledger.begin(beginOf("a")).settle(endOf({ nanoUsd: null, upstream: null, firstTokenMs: null }));
    await ledger.flush();
    expect((await rows())[0]).toMatchObject({ nano_usd: null, upstream: null, first_token_ms: null, app_id: null });
  });

  test("settles an entry once and ignores later reports", async () => {
    const ledger = await open();
    const entry = ledger.begin(beginOf("a"));
    entry.settle(endOf());
    entry.settle(endOf({ promptTokens: 1_000 }));
    entry.progress({ promptTokens: 1_000, completionTokens: 0, estimated: false }, null);
    await ledger.flush();
    entry.settle(endOf({ promptTokens: 1_000 }));
    await ledger.flush();
    expect((await rows()).map((row) => row["prompt_tokens"])).toEqual([7]);
  });

  test("writes a record soon without a flush, and leaves one empty file when idle", async () => {
    const ledger = await open({ segmentAgeMs: 30 });
    ledger.begin(beginOf("a")).settle(endOf());
    expect(await count()).toBe(0);
    await until(async () => (await count()) === 1, "the record is written");
    await until(() => {
      const [file, ...more] = readdirSync(directory);
      return file !== undefined && more.length === 0 && statSync(join(directory, file)).size === 0;
    }, "the spool is empty");
  });

  test("computes roll-ups as sums of the records by hour and day, for any mixture and batches", async () => {
    const ledger = await open();
    for (let i = 0; i < 2_345; i++) {
      ledger
        .begin(
          beginOf(`r${i}`, {
            at: 1_800_000_000 + i * 97,
            accountId: `acct_${i % 3}`,
            keyId: `key_${i % 5}`,
            appId: i % 4 === 0 ? `app_${i % 7}` : null,
            environment: i % 2 === 0 ? "live" : "dev",
            model: `model\n${i % 6}`,
          }),
        )
        .settle(
          endOf({
            promptTokens: i,
            outcome: i % 9 === 0 ? "failed" : i % 5 === 0 ? "cancelled" : "completed",
            nanoUsd: i % 4 === 0 ? null : 3_000_000_000 + i,
          }),
        );
      if (i % 300 === 0) await ledger.flush();
    }
    await ledger.flush();
    await ledger.rollUp();
    expect(await count()).toBe(2_345);
    expect(await rollupErrors()).toEqual([]);
  });

  test("counts a request id once in records and roll-ups, within and across batches", async () => {
    const ledger = await open();
    for (const promptTokens of [1, 2]) ledger.begin(beginOf("a")).settle(endOf({ promptTokens }));
    await ledger.flush();
    for (const id of ["a", "b", "a"]) ledger.begin(beginOf(id)).settle(endOf({ promptTokens: 9 }));
    await ledger.flush();
    expect((await rows()).map((row) => [row["request_id"], row["prompt_tokens"]])).toEqual([
      ["a", 1],
      ["b", 9],
    ]);
    expect(await rollupErrors()).toEqual([]);
  });

  test("does not draw other writes into a failing transaction", async () => {
    const ledger = await open({ drainMs: 10_000 });
    await db.unsafe("ALTER TABLE usage_rollups RENAME TO gone");
    ledger.begin(beginOf("a")).settle(endOf());
    const flushed = ledger.flush();
    const others: Promise<unknown>[] = [];
    for (let i = 0; i < 50; i++) {
      others.push(
        db`INSERT INTO accounts (id, name, tier, created_at) VALUES (${`acct_${i}`}, 'x', 'free', 1)`.execute(),
      );
      await null;
    }
    await Promise.all(others);
    await expect(flushed).rejects.toThrow();
    const [row] = await db`SELECT count(*) AS n FROM accounts`;
    expect(Number(row.n)).toBe(50);
    expect(await count()).toBe(0);
    await db.unsafe("ALTER TABLE gone RENAME TO usage_rollups");
  });

  describe("writes within one event-loop turn", () => {
    test("writes all entries of one event-loop turn at once, before any of them continues", async () => {
      const ledger = await open({ drainMs: 10_000 });
      const before = ledger.begin(beginOf("before"));
      await before.begun;
      const file = join(directory, readdirSync(directory)[0] ?? "");
      const size = statSync(file).size;
      const sizes: number[] = [];
      const note = () => void sizes.push(statSync(file).size);
      const entries = Array.from({ length: 20 }, (_, i) => ledger.begin(beginOf(`r${i}`)));
      const waits: Promise<unknown>[] = entries.map((entry) => entry.begun.then(note));
      before.progress({ promptTokens: 1, completionTokens: 1, estimated: true }, null);
      waits.push(before.settle(endOf()).then(note));
      await null;
      expect(statSync(file).size).toBe(size);
      await Promise.all(waits);
      expect(new Set(entries.map(({ begun }) => begun)).size).toBe(1);
      expect(new Set(sizes).size).toBe(1);
      const kinds = spooled().map((line) => Object.keys(line)[0]);
      expect(kinds).toEqual(["begin", ...entries.map(() => "begin"), "progress", "settle"]);
      for (const entry of entries) entry.settle(endOf());
    });

    test("writes the entry of a single request to the spool synchronously", async () => {
      const ledger = await open({ drainMs: 10_000 });
      const ids = () => spooled().map((line) => Object.keys(line)[0]);
      const received: string[] = [];
      for (let i = 0; i < 2; i++) {
        const entry = ledger.begin(beginOf(`r${i}`));
        expect(ids().slice(2 * i)).toEqual(["begin"]);
        whenSettled(
          entry.begun,
          () => void received.push("begun"),
          () => expect.unreachable(),
        );
        whenSettled(
          entry.settle(endOf()),
          () => void received.push("kept"),
          () => expect.unreachable(),
        );
        expect(ids().slice(2 * i)).toEqual(["begin", "settle"]);
        expect(received.splice(0)).toEqual(["begun", "kept"]);
      }
    });

    test("writes everything begun and settled in a turn to the spool by its end, in order", async () => {
      const ledger = await open({ drainMs: 10_000 });
      const ids = () =>
        spooled().map((line) => Object.entries(line).map(([kind, said]) => `${kind} ${said.requestId}`)[0]);
      const entry = ledger.begin(beginOf("a"));
      await entry.begun;
      expect(ids()).toEqual(["begin a"]);
      const other = ledger.begin(beginOf("b"));
      await entry.settle(endOf());
      expect(ids()).toEqual(["begin a", "begin b", "settle a"]);
      await other.settle(endOf());
      expect(ids()).toEqual(["begin a", "begin b", "settle a", "settle b"]);
    });

    test("includes entries of the current turn in totals, in a flush and at the close", async () => {
      const ledger = await open({ drainMs: 10_000 });
      ledger.begin(beginOf("a")).settle(endOf());
      let tokens = 0;
      const owner = { type: "account", id: "acct_1", environment: "live", since: 0, until: 4_000_000_000 } as const;
      await ledger.readTotals(owner, (totals) => {
        tokens = totals.tokens;
      });
      expect(tokens).toBe(9);
      ledger.begin(beginOf("c")).settle(endOf());
      await ledger.flush();
      expect(await count()).toBe(2);
      ledger.begin(beginOf("b")).settle(endOf());
      await ledger.close();
      expect(await count()).toBe(3);
    });

    test("begins and settles thousands of requests in one turn", async () => {
      const ledger = await open({ drainMs: 10_000, segmentBytes: 50_000 });
      const entries = Array.from({ length: 5_000 }, (_, i) =>
        ledger.begin(beginOf(`r${i}`, { model: "m".repeat(300) })),
      );
      await Promise.all(entries.map(({ begun }) => begun));
      await Promise.all(entries.map((entry) => entry.settle(endOf())));
      await ledger.flush();
      expect(await count()).toBe(5_000);
      expect(await rollupErrors()).toEqual([]);
    });
  });

  test("stores 100,000 requests of many kinds exactly once", async () => {
    const ledger = await open({ drainMs: 20 });
    let running: LedgerEntry[] = [];
    for (let i = 0; i < 100_000; i++) {
      running.push(
        ledger.begin(beginOf(`r${i}`, { keyId: `key_${i % 7}`, model: `m${i % 3}`, at: 1_800_000_000 + (i >> 4) })),
      );
      if (i % 50 < 49) continue;
      await nextTurn();
      for (const [at, entry] of running.entries()) entry.settle(endOf({ upstream: `up${at % 2}`, promptTokens: at }));
      running = [];
    }
    await ledger.flush();
    expect(await count()).toBe(100_000);
    const [sums] =
      await db`SELECT sum(requests) AS requests, sum(prompt_tokens) AS tokens FROM usage_rollups WHERE span = 'day'`;
    expect([Number(sums.requests), Number(sums.tokens)]).toEqual([100_000, 2_000 * ((49 * 50) / 2)]);
    expect(await rollupErrors()).toEqual([]);
  });

  describe("segments of the spool", () => {
    test("deletes segments once the database has their records, although a silent request runs on", async () => {
      const ledger = await open({ segmentBytes: 1_000, carryAfterMs: 0, drainMs: 50 });
      const silent = ledger.begin(beginOf("silent"));
      silent.progress({ promptTokens: 5, completionTokens: 6, estimated: true }, 77);
      await serve(ledger, "r", 300);
      expect(readdirSync(directory).length).toBeGreaterThan(2);
      await until(() => readdirSync(directory).length === 1, "the old segments are deleted");
      silent.settle(endOf({ promptTokens: 50 }));
      await ledger.close();
      expect(readdirSync(directory)).toEqual([]);
      expect(await count()).toBe(301);
    });

    test("keeps the last checkpoint of a stream through many segments", async () => {
      const ledger = await open({ segmentBytes: 1_000, carryAfterMs: 1e9 });
      const stream = ledger.begin(beginOf("stream"));
      await serve(ledger, "a", 60);
      const parts = { cachedTokens: 3, cacheWriteTokens: 1, reasoningTokens: 4, details: { served: ["flex"] } };
      stream.progress({ promptTokens: 5, completionTokens: 6, estimated: false, parts }, 77);
      await serve(ledger, "b", 60);
      await until(() => readdirSync(directory).length <= 2, "the old segments are deleted");
      const copy = join(root, "copy");
      cpSync(directory, copy, { recursive: true });
      const writer = await openUsageWriter(db);
      await recoverSpool({ db, writer, directory: copy, log });
      writer.close();
      expect((await rows()).at(-1)).toMatchObject({
        request_id: "stream",
        outcome: "interrupted",
        prompt_tokens: 5,
        completion_tokens: 6,
        nano_usd: 77,
        estimated: 1,
        ...{ cached_tokens: 3, cache_write_tokens: 1, reasoning_tokens: 4, details: '{"served":["flex"]}' },
      });
      stream.settle(endOf());
    });

    test("keeps segments until the database has their records", async () => {
      const ledger = await open({ segmentBytes: 1_000, carryAfterMs: 0 });
      const unlock = await lockDatabase();
      await serve(ledger, "r", 100);
      const files = readdirSync(directory);
      await until(() => events().includes("usage_write_failed"), "a failure");
      await expect(ledger.flush()).rejects.toThrow(/locked|does not exist/);
      expect(readdirSync(directory)).toEqual(files);
      await unlock();
      await until(async () => (await count()) === 100, "all are written");
    });
  });

  describe("an unavailable database for the ledger", () => {
    test("logs an unavailable database once, blocks no request, and writes everything later", async () => {
      const ledger = await open();
      const unlock = await lockDatabase();
      for (let i = 0; i < 700; i++) ledger.begin(beginOf(`a${i}`, { model: "CANARY" })).settle(endOf());
      await until(() => events().includes("usage_write_failed"), "a failure");
      await expect(ledger.flush()).rejects.toThrow(/locked|does not exist/);
      const open_ = ledger.begin(beginOf("b"));
      await unlock();
      await until(() => events().includes("usage_write_recovered"), "recovery by itself");
      open_.settle(endOf());
      await ledger.flush();
      expect(await count()).toBe(701);
      expect(await rollupErrors()).toEqual([]);
      expect(withoutMaintenance()).toEqual(["usage_write_failed", "usage_write_recovered"]);
      expect(JSON.stringify(logged)).not.toContain("CANARY");
    });

    databases.only(
      "sqlite",
      "waits for a locked database without blocking other work, and writes everything later",
      async () => {
        const ledger = await open({ drainMs: 10_000 });
        const unlock = await lockDatabase();
        for (let i = 0; i < 1_500; i++) ledger.begin(beginOf(`a${i}`)).settle(endOf());
        let beats = 0;
        const beat = setInterval(() => beats++, 1);
        await expect(ledger.flush()).rejects.toThrow(/locked|does not exist/);
        clearInterval(beat);
        // The flush retries for about 60 ms without blocking the event loop.
        expect(beats).toBeGreaterThan(10);
        const flushed = ledger.flush();
        setTimeout(() => void unlock(), 20);
        await flushed;
        expect(await count()).toBe(1_500);
        expect(await rollupErrors()).toEqual([]);
      },
    );

    test("leaves records beyond the memory bound on the spool, and reads them back once", async () => {
      const ledger = await open({ maxPending: 30, segmentBytes: 10_000 });
      const unlock = await lockDatabase();
      for (let i = 0; i < 900; i++) {
        ledger.begin(beginOf(`a${i}`)).settle(endOf({ promptTokens: i }));
        if (i % 20 === 0) await nextTurn();
      }
      await until(() => events().includes("usage_write_failed"), "a failure");
      await unlock();
      let totals: UsageTotals | undefined;
      await ledger.readTotals(
        { type: "account", id: "acct_1", environment: "live", since: 0, until: 4_000_000_000 },
        (all) => {
          totals = all;
        },
      );
      expect(totals).toMatchObject({ requests: 900, tokens: (899 * 900) / 2 + 900 * 2, nanoUsd: 900_000 });
      await ledger.flush();
      expect(await count()).toBe(900);
      expect(await rollupErrors()).toEqual([]);
      await ledger.close();
      expect(readdirSync(directory)).toEqual([]);
    });

    test("counts no record twice in a total if the database fails again during the read of the spool", async () => {
      const ledger = await open({ drainMs: 10_000, maxPending: 1_500 });
      const settle = (id: string) =>
        ledger.begin(beginOf(id)).settle(endOf({ promptTokens: 1, completionTokens: 0, nanoUsd: 0 }));
      const readTokens = async () => {
        let tokens = 0;
        const owner = { type: "account", id: "acct_1", environment: "live", since: 0, until: 4_000_000_000 } as const;
        await ledger.readTotals(owner, (totals) => {
          tokens = totals.tokens;
        });
        return tokens;
      };
      const unlock = await lockDatabase();
      for (let i = 0; i < 1_600; i++) settle(`a${i}`);
      await unlock();
      const lift = await refuseRecord(db, "x");
      const flushed = ledger.flush();
      flushed.catch(() => {});
      // The first record goes into memory and into the segment that will be read back. The second is in memory after
      // that segment, and is refused.
      await turnsUntil(async () => (await count()) >= 1_000);
      settle("y");
      await turnsUntil(async () => (await count()) >= 1_500);
      settle("x");
      await expect(flushed).rejects.toThrow("refused");
      // Records before the refused one are refused too if they are in the same batch.
      const written = await count();
      expect([written >= 1_500, written <= 1_601]).toEqual([true, true]);
      await expect(readTokens()).rejects.toThrow("refused");
      await lift();
      expect(await readTokens()).toBe(1_602);
      await ledger.flush();
      expect(await rollupErrors()).toEqual([]);
    });

    databases.only("postgres", "counts no record twice in a total if a commit's answer is lost", async () => {
      let isLost = true;
      const real = db;
      db = new Proxy(real, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          if (name !== "begin") return value;
          return async (...args: unknown[]) => {
            const result: unknown = await Reflect.apply(target.begin, target, args);
            if (isLost) throw new SQL.PostgresError("Connection closed", { code: "ERR_POSTGRES_CONNECTION_CLOSED" });
            return result;
          };
        },
      });
      const ledger = await open({ drainMs: 10_000 });
      ledger.begin(beginOf("a")).settle(endOf({ promptTokens: 7, completionTokens: 2 }));
      await expect(ledger.flush()).rejects.toThrow("Connection closed");
      expect(await count()).toBe(1);
      const totals: UsageTotals[] = [];
      const owner = { type: "account", id: "acct_1", environment: "live", since: 0, until: 4_000_000_000 } as const;
      const read = () => ledger.readTotals(owner, (all) => void totals.push({ ...all }));
      // `readTotals` rejects as long as it is unknown whether the record is in the database.
      await expect(read()).rejects.toThrow("Connection closed");
      isLost = false;
      db = real;
      await read();
      expect(totals).toMatchObject([{ tokens: 9, nanoUsd: 1_000 }]);
      expect([await count(), await rollupErrors()]).toEqual([1, []]);
    });

    databases.only(
      "postgres",
      "writes no usage to another installation's database, and keeps it for its own",
      async () => {
        const named = (id: string) => writing(db, (tx) => putInstallation(tx, "id", id));
        await named("inst_own");
        const ledger = await open({ drainMs: 10_000 });
        ledger.begin(beginOf("a")).settle(endOf());
        await named("inst_other");
        await expect(ledger.flush()).rejects.toMatchObject({ code: "service_unavailable" });
        await expect(ledger.flush()).rejects.toThrow("emptied or replaced");
        expect(await count()).toBe(0);
        await named("inst_own");
        await ledger.flush();
        expect([await count(), await rollupErrors()]).toEqual([1, []]);
      },
    );

    test("leaves the spool for the next start if the database is unavailable at shutdown", async () => {
      const ledger = await open();
      const unlock = await lockDatabase();
      for (let i = 0; i < 20; i++) ledger.begin(beginOf(`a${i}`)).settle(endOf());
      await ledger.close();
      expect(logged.at(-1)).toMatchObject({ event: "ledger_left_on_spool", fields: { records: 20, lost: 0 } });
      await unlock();
      await open();
      expect(await count()).toBe(20);
      expect(logged.at(-1)).toEqual({ event: "ledger_recovered", fields: { settled: 20, interrupted: 0 } });
    });
  });

  test("reports an unwritable spool at the start with its path and a remedy", async () => {
    writeFileSync(directory, "a file in its place");
    const error: unknown = await open().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StartError);
    expect(String(error)).toContain(directory);
  });

  describe("the end of the ledger", () => {
    test("waits a moment at shutdown for requests that were just cut off, and stores them", async () => {
      const ledger = await open();
      const cut = ledger.begin(beginOf("cut"));
      const closed = ledger.close();
      await Bun.sleep(30);
      cut.settle(endOf({ outcome: "failed", promptTokens: 70 }));
      await closed;
      expect((await rows()).map((row) => [row["request_id"], row["outcome"], row["prompt_tokens"]])).toEqual([
        ["cut", "failed", 70],
      ]);
      expect(readdirSync(directory)).toEqual([]);
    });

    test("accepts nothing after its close, and leaves later settlements to the next start", async () => {
      const ledger = await open();
      const [late, never] = [ledger.begin(beginOf("late")), ledger.begin(beginOf("never"))];
      await ledger.close();
      expect(() => ledger.begin(beginOf("new"))).toThrow(GatewayError);
      await late.settle(endOf({ promptTokens: 70 }));
      await open();
      expect((await rows()).map((row) => [row["request_id"], row["outcome"], row["prompt_tokens"]])).toEqual([
        ["late", "completed", 70],
        ["never", "interrupted", 0],
      ]);
      never.settle(endOf());
    });
  });

  describe("totals of the ledger", () => {
    const account = {
      type: "account",
      id: "acct_1",
      environment: "live",
      since: 1_799_971_200,
      until: 4_000_000_000,
    } as const;

    test("totals records by owner, environment and time, stored or pending", async () => {
      const ledger = await open({ drainMs: 10_000 });
      const read = async (owner: Parameters<SpoolLedger["readTotals"]>[0]) => {
        let found: UsageTotals | undefined;
        await ledger.readTotals(owner, (totals) => {
          found = totals;
        });
        return found;
      };
      const settle = (id: string, begin: Partial<UsageBegin>, promptTokens: number) =>
        ledger.begin(beginOf(id, begin)).settle(endOf({ promptTokens, completionTokens: 0, nanoUsd: promptTokens }));
      for (const round of ["a", "b"]) {
        settle(`${round}1`, {}, 1);
        settle(`${round}2`, { keyId: "key_2" }, 10);
        settle(`${round}3`, { environment: "test" }, 100);
        settle(`${round}4`, { accountId: "acct_2", keyId: "key_3" }, 1_000);
        settle(`${round}5`, { at: account.since - 1 }, 10_000);
        settle(`${round}6`, { at: account.since }, 100_000);
        if (round === "a") await ledger.flush();
      }
      expect(await read(account)).toMatchObject({ tokens: 200_022, nanoUsd: 200_022 });
      expect(await read({ ...account, environment: "test" })).toMatchObject({ tokens: 200, nanoUsd: 200 });
      expect(await read({ ...account, type: "key", id: "key_2" })).toMatchObject({ tokens: 20, nanoUsd: 20 });
      expect(await read({ ...account, type: "key", id: "key_9" })).toMatchObject({ tokens: 0, nanoUsd: 0 });
      expect(await read({ ...account, since: 0, until: 4_000_000_000 })).toMatchObject({
        tokens: 220_022,
        nanoUsd: 220_022,
      });
    });

    test("includes usage of a key's predecessor and children in its totals", async () => {
      await db`INSERT INTO accounts (id, name, tier, created_at) VALUES ('acct_1', 'x', 'free', 1)`;
      const insertKey = (id: string, limitId: string, parentId: string | null) => db`
      INSERT INTO api_keys
        (id, account_id, name, environment, digest, prefix, last4, scopes, created_at, limit_id, parent_id)
      VALUES (${id}, 'acct_1', 'x', 'live', ${id}, '', '', '', 1, ${limitId}, ${parentId})`;
      await insertKey("key_old", "key_old", null);
      await insertKey("key_new", "key_old", null);
      await insertKey("key_child", "key_child", "key_new");
      await insertKey("key_grandchild", "key_grandchild", "key_child");
      await insertKey("key_other", "key_other", null);
      const ledger = await open({ drainMs: 10_000 });
      for (const [i, keyId] of ["key_old", "key_new", "key_child", "key_grandchild", "key_other"].entries()) {
        for (const round of ["a", "b"]) {
          const end = endOf({ promptTokens: 10 ** i, completionTokens: 0 });
          ledger.begin(beginOf(`${round}${i}`, { keyId })).settle(end);
          if (round === "a") await ledger.flush();
        }
      }
      for (const [id, tokens] of [
        ["key_new", 2_222],
        ["key_old", 2_222],
        ["key_child", 2_200],
        ["key_grandchild", 2_000],
        ["key_other", 20_000],
      ] as const) {
        let found: UsageTotals | undefined;
        await ledger.readTotals({ ...account, type: "key", id }, (totals) => {
          found = totals;
        });
        expect([id, found?.tokens]).toEqual([id, tokens]);
      }
    });

    test("gives exact totals while requests are settled and written", async () => {
      const ledger = await open({ drainMs: 1, maxPending: 200, segmentBytes: 50_000 });
      let settled = 0;
      let going = true;
      const load = (async () => {
        for (let round = 0; going; round++) {
          // Every 20th round settles more records than memory may hold.
          for (let i = round % 20 === 0 ? 300 : 20; i > 0; i--) {
            ledger.begin(beginOf(`r${settled}`)).settle(endOf({ promptTokens: 1, completionTokens: 0 }));
            settled++;
            if (i % 10 === 0) await null;
          }
          // The load waits for the drain, because otherwise a slow machine would never read back the records that are
          // only in the spool.
          do await Bun.sleep(2);
          while (going && ledger.figures.pending > 100);
        }
      })();
      const differences: number[] = [];
      try {
        // The test reads until many requests are settled, however slow the machine is.
        for (let i = 0; i < 60 || (settled <= 500 && i < 5_000); i++) {
          await ledger.readTotals(account, ({ tokens }) => void differences.push(tokens - settled));
          await Bun.sleep(1);
        }
      } finally {
        going = false;
        await load;
      }
      expect(settled).toBeGreaterThan(500);
      expect(differences).toEqual(differences.map(() => 0));
      await ledger.flush();
      expect(await count()).toBe(settled);
      expect(await rollupErrors()).toEqual([]);
    });

    test("reads the totals of many owners a few at a time, delivering each at once", async () => {
      const real = db;
      let [running, most] = [0, 0];
      const slow = async (query: PromiseLike<unknown>) => {
        most = Math.max(most, ++running);
        await Bun.sleep(20);
        return await Promise.resolve(query).finally(() => running--);
      };
      db = new Proxy(real, {
        apply(target, self, args) {
          const query: PromiseLike<unknown> = Reflect.apply(target, self, args);
          return String(args[0]).includes("min(CASE WHEN first_at") ? slow(query) : query;
        },
        get(target, name) {
          const value: unknown = Reflect.get(target, name);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      const ledger = await open({ drainMs: 10_000 });
      db = real;
      for (let i = 0; i < 10; i++) {
        ledger
          .begin(beginOf(`r${i}`, { accountId: `acct_${i}` }))
          .settle(endOf({ promptTokens: i, completionTokens: 0 }));
        if (i === 4) await ledger.flush();
      }
      const found: number[] = [];
      const ids = Array.from({ length: 10 }, (_, i) => i);
      await Promise.all(
        ids.map((i) => ledger.readTotals({ ...account, id: `acct_${i}` }, ({ tokens }) => void found.push(tokens))),
      );
      expect(found).toEqual(ids);
      expect(most).toBeWithin(2, 9);
    });

    test("fails only the reader whose totals cannot be read", async () => {
      const ledger = await open();
      await db.unsafe("ALTER TABLE usage_rollups RENAME TO gone");
      await expect(ledger.readTotals(account, () => {})).rejects.toThrow();
      await db.unsafe("ALTER TABLE gone RENAME TO usage_rollups");
      const refuse = () => {
        throw new Error("mine");
      };
      await expect(ledger.readTotals(account, refuse)).rejects.toThrow("mine");
      ledger.begin(beginOf("a")).settle(endOf());
      await ledger.flush();
      expect(await count()).toBe(1);
    });
  });

  /** Mounts a file system of 64 KB. Returns undefined if this user may not mount one. */
  function mountSmallDisk(): string | undefined {
    const point = mkdtempSync(join(tmpdir(), "headrace-disk-"));
    if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", point]).status === 0) return point;
    rmSync(point, { recursive: true });
    return undefined;
  }

  /** Unmounts the disk, even if a descriptor of a file on it is still open. */
  function unmount(disk: string): void {
    spawnSync("umount", ["-l", disk]);
    rmSync(disk, { recursive: true, force: true });
  }

  const smallDisk = mountSmallDisk();
  if (smallDisk !== undefined) unmount(smallDisk);

  describe.skipIf(smallDisk === undefined)("a full disk for the ledger", () => {
    beforeEach(() => {
      const disk = mountSmallDisk() ?? "";
      directory = join(disk, "spool");
      later.push(() => unmount(disk));
    });

    const ballast = () => join(directory, "ballast");

    /** Fills the disk with a file in the directory of the spool. */
    function fillDisk(): void {
      const file = openSync(ballast(), "w");
      try {
        for (;;) writeSync(file, new Uint8Array(1_024));
      } catch (error) {
        expect(error).toMatchObject({ code: "ENOSPC" });
      } finally {
        closeSync(file);
      }
    }

    async function fill(ledger: SpoolLedger, prefix: string): Promise<{ entries: LedgerEntry[]; error: unknown }> {
      const entries: LedgerEntry[] = [];
      for (;;) {
        const entry = ledger.begin(beginOf(`${prefix}${entries.length}`));
        try {
          await entry.begun;
        } catch (error) {
          return { entries, error };
        }
        entries.push(entry);
      }
    }

    test("refuses new requests on a full disk, loses no begun one, and recovers with room", async () => {
      const ledger = await open({ segmentBytes: 16_000, carryAfterMs: 0, drainMs: 10_000 });
      const { entries, error } = await fill(ledger, "a");
      expect(error).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 5 });
      expect(String(error)).not.toContain("ENOSPC");
      for (const entry of entries) {
        entry.progress({ promptTokens: 1, completionTokens: 1, estimated: true }, null);
        entry.settle(endOf());
      }
      expect(withoutMaintenance()).toEqual(["ledger_spool_failed"]);
      await ledger.flush();
      expect(await count()).toBe(entries.length);
      expect(await rollupErrors()).toEqual([]);
      await ledger.close();
      expect(readdirSync(directory)).toEqual([]);
    });

    test("neither counts a truncated frame nor spoils the next one", async () => {
      mkdirSync(directory);
      const ballast = join(directory, "ballast");
      writeFileSync(ballast, new Uint8Array(40_000));
      const clock = manualClock();
      const ledger = await open({ drainMs: 10_000, clock });
      const { entries } = await fill(ledger, "a");
      rmSync(ballast);
      // After one second the ledger asks the disk for space again.
      clock.advance(1_000);
      const after = await fill(ledger, "b");
      expect(after.entries.length).toBeGreaterThan(10);
      expect(withoutMaintenance()).toEqual(["ledger_spool_failed", "ledger_spool_recovered", "ledger_spool_failed"]);
      await ledger.close();
      await open();
      expect(await count()).toBe(entries.length + after.entries.length);
      for (const entry of [...entries, ...after.entries]) entry.settle(endOf());
    });

    function failureOf(work: () => void): unknown {
      try {
        work();
      } catch (error) {
        return error;
      }
      return undefined;
    }

    function frameOf(...requestIds: string[]): Uint8Array {
      const encoder = new SpoolEncoder();
      for (const begin of requestIds.map((id) => beginOf(id))) encoder.begin(begin, requestKindOf(begin));
      return encoder.take();
    }

    /** Makes a spool whose segment has space for all bytes of `frame` except the last. */
    function spoolWithoutRoomFor(frame: Uint8Array): { spool: Spool; makeRoom: () => void } {
      prepareSpoolDirectory(directory);
      const spool = new Spool({ directory, clock: systemClock, segmentBytes: 1e9 });
      const ballast = join(directory, "ballast");
      writeFileSync(ballast, new Uint8Array(15 * 4_096));
      spool.append(Buffer.from(`${"x".repeat(4_096 - frame.length)}\n`));
      return { spool, makeRoom: () => rmSync(ballast) };
    }

    test("takes back a frame completely if its last byte was not written", async () => {
      const refused = frameOf("refused", "refused as well");
      const { spool, makeRoom } = spoolWithoutRoomFor(refused);
      const before = spool.current.bytes;
      expect(() => spool.append(refused)).toThrow(/ENOSPC/);
      expect(spool.current.bytes).toBe(before);
      expect(
        readFileSync(spool.current.path)
          .subarray(before)
          .every((byte) => byte === 0),
      ).toBe(true);
      makeRoom();
      spool.append(frameOf("taken"));
      expect(spooled()).toEqual([{ begin: beginOf("taken") }]);
      await spool.close();
    });

    test("asks a full disk for room once a second, and keeps the room that it had before", async () => {
      prepareSpoolDirectory(directory);
      const clock = manualClock();
      const spool = new Spool({ directory, clock, segmentBytes: 1e9 });
      spool.reserve(1_000);
      fillDisk();
      const refusal = failureOf(() => spool.reserve(30_000));
      expect(refusal).toMatchObject({ code: "ENOSPC" });
      rmSync(ballast());
      clock.advance(999);
      expect(failureOf(() => spool.reserve(30_000))).toBe(refusal);
      spool.reserve(1_000);
      clock.advance(1);
      spool.reserve(30_000);
      await spool.close();
    });

    // hardening: F21
    test("refuses only requests without room for their end, and ends begun ones on a full disk", async () => {
      mkdirSync(directory);
      const ledger = await open({ drainMs: 1e9 });
      const ending = ledger.begin(beginOf("ending"));
      await ending.begun;
      fillDisk();
      const many = Array.from({ length: 100 }, (_, i) => ledger.begin(beginOf(`many${i}`)));
      const left = ledger.begin(beginOf("left at once"));
      await Promise.all([left.settle(endOf()), ending.settle(endOf({ promptTokens: 50 }))]);
      const errors = await Promise.all(
        [...many, left].map(({ begun }) =>
          begun.then(
            () => undefined,
            (error: unknown) => error,
          ),
        ),
      );
      const taken = many.filter((_, i) => errors[i] === undefined);
      expect(taken.length).toBeWithin(1, 90);
      const refusals = errors.filter((error) => error !== undefined);
      expect(refusals.every((error) => error instanceof GatewayError && error.code === "service_unavailable")).toBe(
        true,
      );
      for (const entry of many) {
        for (let i = 0; i < 200; i++) entry.progress({ promptTokens: 1, completionTokens: i, estimated: true }, null);
        await entry.settle(endOf());
      }
      // The spool is what the next process would find if this one died now.
      const settled = spooled().flatMap((line) => ("settle" in line ? [line.settle.requestId] : []));
      expect(settled).toEqual(["ending", ...taken.map((_, i) => `many${i}`)]);
      expect(ledger.figures).toMatchObject({ open: 0, pending: taken.length + 1 });
      expect(ledger.figures.spoolBytes).toBeGreaterThan(0);
      expect(withoutMaintenance()).toEqual(["ledger_spool_failed"]);
      rmSync(ballast());
      const after = ledger.begin(beginOf("after"));
      await after.begun;
      await after.settle(endOf());
      expect(withoutMaintenance()).toEqual(["ledger_spool_failed", "ledger_spool_recovered"]);
      const started = performance.now();
      await ledger.close();
      // `close` does not wait, because refused requests are not open.
      expect(performance.now() - started).toBeLessThan(withinMs(400));
      expect(await count()).toBe(taken.length + 2);
      expect(await rollupErrors()).toEqual([]);
      expect(readdirSync(directory)).toEqual([]);
    });

    test("keeps settled records on the spool for the next start if disk and database both fail", async () => {
      mkdirSync(directory);
      const ledger = await open();
      const unlock = await lockDatabase();
      const { entries } = await fill(ledger, "a");
      const [settled, running] = [entries.slice(0, 40), entries.slice(40)];
      for (const entry of settled) entry.settle(endOf());
      await ledger.close();
      expect(logged.at(-1)).toMatchObject({ event: "ledger_left_on_spool", fields: { records: 40, lost: 0 } });
      await unlock();
      await open();
      const found = await db`SELECT outcome, count(*) AS n FROM usage_records GROUP BY outcome ORDER BY outcome`;
      expect(found.map((row: { outcome: string; n: number }) => [row.outcome, Number(row.n)])).toEqual([
        ["completed", 40],
        ["interrupted", running.length],
      ]);
      for (const entry of running) entry.settle(endOf());
    });
  });

  test("moves running requests to a new file if the spool's files are deleted, and continues its maintenance", async () => {
    const ledger = await open({ carryAfterMs: 0 });
    const running = ledger.begin(beginOf("running"));
    await running.begun;
    await serve(ledger, "a", 20);
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    await serve(ledger, "b", 1);
    const begins = () => spooled().flatMap((line) => ("begin" in line ? [line.begin.requestId] : []));
    await until(() => begins().includes("running"), "the request is in a new file");
    await running.settle(endOf());
    await until(async () => (await count()) === 22, "all are in the database");
    // A missing file does not prevent the ledger from deleting the other files.
    await until(() => readdirSync(directory).length <= 1, "the other files are deleted");
    expect(events()).toEqual(["spool_file_deleted"]);
    await ledger.close();
    expect(readdirSync(directory)).toEqual([]);
  });

  test("recreates the spool's directory if it is deleted under running requests", async () => {
    const ledger = await open({ carryAfterMs: 0 });
    const running = ledger.begin(beginOf("running"));
    await running.begun;
    rmSync(directory, { recursive: true });
    await until(() => events().includes("spool_file_deleted"), "it is noticed");
    await serve(ledger, "b", 1);
    const begins = () => spooled().flatMap((line) => ("begin" in line ? [line.begin.requestId] : []));
    await until(() => begins().includes("running"), "the request is in a new file");
    await running.settle(endOf());
    await until(async () => (await count()) === 2, "both are in the database");
  });

  test("continues without records of a deleted file that the database did not have", async () => {
    const unlock = await lockDatabase();
    const ledger = await open({ carryAfterMs: 0, maxPending: 2 });
    await serve(ledger, "a", 6);
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    await unlock();
    await serve(ledger, "b", 1);
    await until(() => ledger.figures.pending === 0, "nothing waits");
    expect(logged.map(({ fields }) => String(fields?.["detail"]))).toContainEqual(
      expect.stringMatching(/: \d records of usage in it are lost/),
    );
    const before = await count();
    await serve(ledger, "c", 1);
    await until(async () => (await count()) === before + 1, "the next one is booked");
  });

  test("carries a request to a new segment at its age limit, without other activity", async () => {
    const ledger = await open({ segmentAgeMs: 20, carryAfterMs: 1_500 });
    const running = ledger.begin(beginOf("silent"));
    await running.begun;
    await until(() => !readdirSync(directory).includes("00000001.spool"), "it is carried over");
    await running.settle(endOf());
  });

  test("carries a silent request to a new segment only once", async () => {
    const ledger = await open({ segmentAgeMs: 20, carryAfterMs: 0 });
    const running = ledger.begin(beginOf("silent"));
    await running.begun;
    await until(() => !readdirSync(directory).includes("00000001.spool"), "it is carried over");
    const files = readdirSync(directory);
    await Bun.sleep(200);
    expect(readdirSync(directory)).toEqual(files);
    await running.settle(endOf());
  });
});
