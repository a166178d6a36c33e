// Records past their time are deleted, nothing else is, and no usage that was deleted is ever counted again.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../tests/support/databases.ts";
import { type ManualClock, manualClock } from "../../tests/support/manual-clock.ts";
import type { LogFields } from "../base/log.ts";
import type { RetentionSettings } from "../domain/usage/retention.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import { SpoolLedger } from "../ledger/ledger.ts";
import { catchUp } from "../ledger/usage/usage-rows.ts";
import { openUsageWriter, type UsageWriter } from "../ledger/usage/usage-writer.ts";
import { auditEvent } from "../policy/records/audit.ts";
import { DeletionClock } from "../policy/records/deletion-clock.ts";
import { Retention } from "../policy/records/retention.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlAuditLog } from "../storage/tables/audit-log.ts";
import { SqlRefusalStore } from "../storage/tables/refusal-store.ts";
import { SqlRetentionStore } from "../storage/tables/retention-store.ts";

const day = 86_400;
/** The start of a day. */
const today = 20_900 * day;
const forGood: RetentionSettings = {
  requests: { days: null, isDefault: false },
  hourly_usage: { days: null, isDefault: false },
  refusals: { days: null, isDefault: false },
  refused_requests: { days: null, isDefault: false },
  audit: { days: null, isDefault: false },
};

let opened: TestDatabase;
let db: Database;
let clock: ManualClock;
let writer: UsageWriter;
let settings: RetentionSettings;
let retentions: Retention[];
let logged: LogFields[];

function keep(changed: Partial<Record<keyof RetentionSettings, number | null>>): void {
  const given = Object.entries(changed).map(([kind, days]) => [kind, { days, isDefault: false }]);
  settings = { ...settings, ...Object.fromEntries(given) };
}

function newRetention(on = db, rollUp = () => catchUp(writer)): Retention {
  const store = new SqlRetentionStore(on);
  const tell =
    (level: string) =>
    (event: string, fields: LogFields = {}) =>
      void logged.push({ level, event, ...fields });
  const log = { info: tell("info"), warn: tell("warn"), error: tell("error") };
  const retention = new Retention({
    store,
    rollUp,
    settings: () => settings,
    clock,
    deletionClock: new DeletionClock({ store, clock, log }),
    log,
    everyMs: 3_600_000,
    firstMs: 3_600_000,
  });
  retentions.push(retention);
  return retention;
}

function usage(at: number, more: Partial<UsageRecord> = {}): UsageRecord {
  return {
    requestId: `req_${at}_${more.accountId ?? "acct_1"}`,
    at,
    accountId: "acct_1",
    keyId: "key_1",
    appId: null,
    environment: "live",
    operation: "chat",
    model: "m",
    stream: false,
    outcome: "completed",
    errorCode: null,
    promptTokens: 3,
    completionTokens: 4,
    estimated: false,
    nanoUsd: 5,
    capped: false,
    upstream: null,
    durationMs: 6,
    firstTokenMs: null,
    queueMs: 0,
    ...more,
  };
}

async function requestTimes(): Promise<number[]> {
  const rows: { at: number | string }[] = await db`SELECT at FROM usage_records ORDER BY at`;
  return rows.map(({ at }) => Number(at));
}

/** Requests in the sums of one span, by the day on which they begin. */
async function sums(span: "hour" | "day"): Promise<Record<number, number>> {
  const rows: { start: number | string; requests: number | string }[] = await db`
    SELECT start, requests FROM usage_rollups WHERE span = ${span}`;
  const found: Record<number, number> = {};
  for (const row of rows) {
    const daysAgo = Math.floor((today - Number(row.start)) / day);
    found[daysAgo] = (found[daysAgo] ?? 0) + Number(row.requests);
  }
  return found;
}

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db } = opened);
    clock = manualClock(today + 3_600);
    writer = await openUsageWriter(db);
    settings = forGood;
    retentions = [];
    logged = [];
  });

  afterEach(async () => {
    for (const retention of retentions) await retention.close();
    writer.close();
    await opened.close();
  });

  // hardening: O8
  test("deletes single requests by day and keeps the sums of usage", async () => {
    const times = [0, 5, 9, 10, 11, 40].map((daysAgo) => today - daysAgo * day + 100);
    await writer.insert(times.map((at) => usage(at)));
    const before = [await sums("hour"), await sums("day")];
    keep({ requests: 10 });
    const retention = newRetention();
    await retention.sweep();
    const kept = (at: number) => at >= today - 10 * day;
    expect(await requestTimes()).toEqual(times.filter(kept).sort((a, b) => a - b));
    expect([await sums("hour"), await sums("day")]).toEqual(before);
    expect(retention.keptSince("requests")).toBe(today - 10 * day);
    // A day later one more is past its time; in the same day nothing is.
    clock.advance(3_600_000);
    await retention.sweep();
    expect(await requestTimes()).toHaveLength(4);
    clock.advance(day * 1000);
    await retention.sweep();
    expect(await requestTimes()).toHaveLength(3);
  });

  test("deletes requests of very many keys only after their sums are written, despite crashes", async () => {
    const many = Array.from({ length: 300 }, (_, i) =>
      usage(today - 20 * day + i, { requestId: `req_many_${i}`, keyId: `key_${i}` }),
    );
    await writer.insert(many);
    keep({ requests: 10 });
    let fails = true;
    const retention = newRetention(db, async () => {
      if (fails) throw new Error("database is locked");
      await catchUp(writer);
    });
    await retention.sweep();
    expect(logged).toContainEqual(expect.objectContaining({ event: "retention_failed", kind: "requests" }));
    expect(await requestTimes()).toHaveLength(300);
    fails = false;
    await retention.sweep();
    expect(await requestTimes()).toEqual([]);
    const next = await openUsageWriter(db);
    next.close();
    expect(await sums("day")).toEqual({ 20: 300 });
  });

  // hardening: O8
  test("deletes hourly sums of every account, never before the requests that they index, and keeps daily ones", async () => {
    const owners = ["acct_1", "acct_2", "acct_3"];
    const records = owners.flatMap((accountId) =>
      [0, 40, 41].map((ago) => usage(today - ago * day + 100, { accountId })),
    );
    await writer.insert(records);
    keep({ hourly_usage: 35 });
    const retention = newRetention();
    await retention.sweep();
    expect(await sums("hour")).toEqual({ 0: 3, 40: 3, 41: 3 });
    keep({ requests: 40 });
    await retention.sweep();
    expect(await sums("hour")).toEqual({ 0: 3, 40: 3 });
    keep({ requests: 30 });
    await retention.sweep();
    expect(await sums("hour")).toEqual({ 0: 3 });
    expect(await sums("day")).toEqual({ 0: 3, 40: 3, 41: 3 });
  });

  // hardening: O8
  test("deletes refusal counts of every account and environment", async () => {
    const refusals = new SqlRefusalStore(db);
    const count = (accountId: string, environment: "live" | "test", start: number) =>
      ({
        accountId,
        environment,
        start,
        keyId: null,
        appId: null,
        model: null,
        reason: "rate_limit",
        requests: 1,
        lastAt: start,
      }) as never;
    const starts = [0, 8, 100].map((ago) => today - ago * day);
    await refusals.add(
      starts.flatMap((start) => [count("a", "live", start), count("a", "test", start), count("b", "live", start)]),
    );
    keep({ refusals: 8 });
    await newRetention().sweep();
    const rows: { start: number | string }[] = await db`SELECT start FROM refusals`;
    expect(rows.map(({ start }) => (today - Number(start)) / day).sort((a, b) => a - b)).toEqual([0, 0, 0, 8, 8, 8]);
  });

  // hardening: O8
  test("keeps the audit log by default, and audits its configured purge once", async () => {
    const audit = new SqlAuditLog(db);
    const events = [0, 50, 51, 52].map((ago) =>
      auditEvent(
        "key.created",
        { type: "operator" },
        { nowSeconds: today - ago * day + 5, clientAddress: null, requestId: null },
        {
          ...{ accountId: null, targetId: `key_${ago}`, detail: {} },
        },
      ),
    );
    await audit.append(events);
    const [one, two] = [newRetention(), newRetention()];
    await one.sweep();
    expect(await audit.list({}, { after: undefined, limit: 10 })).toHaveLength(4);
    keep({ audit: 50 });
    await Promise.all([one.sweep(), two.sweep()]);
    await one.sweep();
    const left = await audit.list({}, { after: undefined, limit: 10 });
    expect(left.map(({ targetId }) => targetId).sort()).toEqual(["key_0", "key_50", null]);
    expect(left.find(({ action }) => action === "audit.purged")).toMatchObject({
      actor: { type: "system" },
      detail: { before: today - 50 * day, retention_days: 50 },
    });
  });

  describe("deleted requests", () => {
    // hardening: O8
    test("leaves out and logs a deleted request that an old spool brings back", async () => {
      const old = usage(today - 20 * day);
      const recent = usage(today - day);
      await writer.insert([old]);
      const counted = await sums("day");
      keep({ requests: 10 });
      await newRetention().sweep();
      expect(await requestTimes()).toEqual([]);
      expect(await writer.insert([old, recent])).toBe(1);
      expect(writer.tooOld).toBe(1);
      // Another process, with a spool in which it stands.
      const directory = join(opened.directory, "spool");
      const spoolClock = manualClock(today - 20 * day);
      const open = (at: ManualClock) =>
        SpoolLedger.open({
          db,
          directory,
          clock: at,
          log: { info() {}, error() {}, warn: (event, fields) => void logged.push({ event, ...fields }) },
        });
      const dying = await open(spoolClock);
      const { requestId, at, accountId, keyId, appId, environment, operation, model, stream, ...end } = old;
      const release = await opened.refuseUsage();
      const entry = dying.begin({ requestId, at, accountId, keyId, appId, environment, operation, model, stream });
      await entry.begun;
      await entry.settle(end);
      await dying.close();
      await release();
      const next = await open(clock);
      expect(next.recovered).toMatchObject({ settled: 0, tooOld: 1 });
      await next.close();
      expect(logged.filter(({ event }) => event === "usage_too_old")).toHaveLength(1);
      expect(await sums("day")).toEqual({ ...counted, 1: 1 });
      expect(await requestTimes()).toEqual([recent.at]);
    });

    test("does not count a request again that is added during its deletion", async () => {
      const old = Array.from({ length: 200 }, (_, i) => usage(today - 20 * day + i));
      await writer.insert(old);
      const counted = await sums("day");
      keep({ requests: 10 });
      const other = await openUsageWriter(await opened.openAgain());
      const sweeping = newRetention().sweep();
      for (let i = 0; i < 20; i++) {
        await other.insert(old.slice(i * 10, i * 10 + 10), 2_000);
        await new Promise(setImmediate);
      }
      await sweeping;
      other.close();
      expect(await requestTimes()).toEqual([]);
      expect(await sums("day")).toEqual(counted);
    });
  });

  // hardening: O8
  test("completes an interrupted deletion in the next sweep of any process", async () => {
    await writer.insert(Array.from({ length: 700 }, (_, i) => usage(today - 20 * day + i)));
    keep({ requests: 10 });
    const dying = newRetention();
    const swept = dying.sweep();
    while ((await requestTimes()).length === 700) await Bun.sleep(1);
    await dying.close();
    await swept;
    expect((await requestTimes()).length).toBeGreaterThan(0);
    await newRetention().sweep();
    expect(await requestTimes()).toEqual([]);
  });

  test("announces a default for two weeks before it deletes anything", async () => {
    await writer.insert([usage(today - 500 * day)]);
    settings = { ...settings, requests: { days: 400, isDefault: true } };
    const retention = newRetention();
    await retention.sweep();
    await retention.sweep();
    const reported = logged.filter(({ event }) => event === "retention_begins");
    expect(reported).toMatchObject([
      { level: "warn", requests_days: 400, at: new Date((today + 3_600 + 14 * day) * 1000).toISOString() },
    ]);
    clock.advance(13 * day * 1000);
    await newRetention().sweep();
    expect(await requestTimes()).toHaveLength(1);
    clock.advance(day * 1000);
    await retention.sweep();
    expect(await requestTimes()).toEqual([]);
  });

  test("applies a default at once if only a chosen time has something to delete", async () => {
    const start = today - 100 * day;
    const count = { accountId: "a", environment: "live", start, keyId: null, appId: null, model: null } as const;
    await new SqlRefusalStore(db).add([{ ...count, reason: "capacity", requests: 1, lastAt: start }]);
    settings = { ...settings, requests: { days: 400, isDefault: true } };
    keep({ refusals: 8 });
    const retention = newRetention();
    await retention.sweep();
    expect(logged.map(({ event }) => event)).not.toContain("retention_begins");
    expect(retention.keptSince("requests")).toBe(today - 400 * day);
  });

  test("applies a chosen time at once, and announces nothing in a new installation", async () => {
    settings = { ...settings, requests: { days: 400, isDefault: true } };
    const retention = newRetention();
    await retention.sweep();
    expect(retention.keptSince("requests")).toBe(today - 400 * day);
    expect(logged).toEqual([]);
    await writer.insert([usage(today - 30 * day)]);
    keep({ requests: 20 });
    await retention.sweep();
    expect(await requestTimes()).toEqual([]);
    // A longer time brings nothing back, and what is gone stays known.
    keep({ requests: 100 });
    await retention.sweep();
    expect(retention.keptSince("requests")).toBe(today - 20 * day);
  });

  describe("a clock that jumps ahead by a year", () => {
    const year = 365 * day;
    const jumps = () => logged.filter(({ event }) => event === "clock_jumped");

    beforeEach(async () => {
      await writer.insert([usage(today - 5 * day), usage(today - 20 * day)]);
      keep({ requests: 10, audit: 10, refusals: 10, hourly_usage: 10 });
      await newRetention().sweep();
      expect(await requestTimes()).toEqual([today - 5 * day]);
    });

    // hardening: O8
    test("deletes nothing after the jump and logs it once, in a running and a new process", async () => {
      const running = newRetention();
      await running.sweep();
      clock.jump(year);
      for (const retention of [running, newRetention()]) {
        await retention.sweep();
        await retention.sweep();
        expect(await requestTimes()).toEqual([today - 5 * day]);
        expect(retention.keptSince("requests")).toBe(today - 10 * day);
      }
      expect(jumps()).toMatchObject([{ level: "error" }]);
      // Set right again: it goes on as if nothing had been, and usage is counted.
      clock.jump(-year);
      clock.advance(2 * day * 1000);
      await writer.insert([usage(today + day)]);
      await running.sweep();
      expect(running.keptSince("requests")).toBe(today - 8 * day);
      expect(await requestTimes()).toEqual([today - 5 * day, today + day]);
    });

    // hardening: O8
    test("trusts the new time after three days, as after a long shutdown", async () => {
      clock.jump(year);
      for (let hour = 0; hour < 72; hour += 6) {
        await newRetention().sweep();
        expect(await requestTimes()).toHaveLength(1);
        clock.advance(6 * 3_600_000);
      }
      const last = newRetention();
      await last.sweep();
      expect(await requestTimes()).toEqual([]);
      expect(last.keptSince("requests")).toBe(today + year + 3 * day - 10 * day);
      expect(jumps()).toHaveLength(1);
    });

    test("does not trust the time after repeated jumps, or if another replica has the right time", async () => {
      for (const seconds of [year, year, -2 * year, year]) {
        clock.jump(seconds);
        await newRetention().sweep();
      }
      clock.advance(2 * day * 1000);
      await newRetention().sweep();
      expect(await requestTimes()).toHaveLength(1);
      clock.jump(-year);
      await newRetention().sweep();
      clock.jump(year);
      clock.advance(2 * day * 1000);
      await newRetention().sweep();
      expect(await requestTimes()).toHaveLength(1);
    });
  });
});
