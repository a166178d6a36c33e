// The totals of accounts and of all accounts equal the sums of the single requests, by every group that operators have.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { explained, explainedByPostgres } from "../../../tests/support/query-plans.ts";
import { timeBounds, timeStep } from "../../domain/usage/time-counts.ts";
import { type UsageQuery, type UsageRecord, type UsageRow, usageOutcomes } from "../../domain/usage/usage.ts";
import { reportOfRecords } from "./record-report.ts";
import { SqlUsageReports } from "./usage-reports.ts";
import { catchUp } from "./usage-rows.ts";
import { openUsageWriter } from "./usage-writer.ts";

const january = Date.UTC(2026, 0, 1) / 1000;
const hour = 3_600;
const day = 24 * hour;
const page = { after: undefined, limit: 1_000 };

/** Requests of three accounts, three models and three upstreams, two for each hour of three days. */
const records: UsageRecord[] = Array.from({ length: 144 }, (_, i) => ({
  requestId: `req_${String(i).padStart(8, "0")}`,
  at: january + Math.floor(i / 2) * hour + i,
  accountId: `acct_${i % 3}`,
  keyId: `key_${i % 5}`,
  appId: i % 4 === 0 ? "app_1" : null,
  environment: i % 11 === 0 ? "dev" : "live",
  operation: "chat",
  model: `model-${i % 7 === 0 ? 1 : i % 3}`,
  stream: i % 2 === 0,
  outcome: usageOutcomes[i % 9] ?? "completed",
  errorCode: null,
  promptTokens: i,
  completionTokens: 2 * i,
  estimated: false,
  nanoUsd: i % 6 === 0 ? null : 1_000_003 * i,
  capped: false,
  upstream: i % 8 === 0 ? null : `up-${i % 3}`,
  durationMs: 40 * i,
  firstTokenMs: i % 2 === 0 ? 10 * i : null,
  queueMs: 0,
}));

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let totals: SqlUsageReports;

  beforeAll(async () => {
    opened = await databases.open();
    const writer = await openUsageWriter(opened.db);
    for (let i = 0; i < records.length; i += 50) await writer.insert(records.slice(i, i + 50));
    // Records that are sent again do not count again.
    expect(await writer.insert(records.slice(0, 30))).toBe(0);
    await catchUp(writer);
    writer.close();
    totals = new SqlUsageReports(opened.db, undefined, { totalsSince: 0 });
  });

  afterAll(() => opened.close());

  const all: UsageQuery = {
    ...{ accountId: null, environment: "live", start: january, end: january + 3 * day, bucket: "day", groupBy: [] },
  };
  const asked: Partial<UsageQuery>[] = [
    {},
    { bucket: "hour" },
    { bucket: "month", groupBy: ["account"] },
    { groupBy: ["account"] },
    { groupBy: ["model"], bucket: "hour" },
    { groupBy: ["model"], upstream: "up-1" },
    { groupBy: ["upstream"] },
    { groupBy: ["upstream"], model: "model-1" },
    { groupBy: ["deployment"], bucket: "hour" },
    { groupBy: ["deployment", "environment"], bucket: "month" },
    { groupBy: ["outcome"] },
    { outcome: "failed" },
    { model: "model-2" },
    { upstream: "up-2", model: "model-2" },
    { accountId: "acct_1", groupBy: ["model"] },
    { accountId: "acct_1", model: "model-1", bucket: "hour" },
    { environment: "dev", groupBy: ["upstream"] },
  ];

  test.each(asked.map((more) => [JSON.stringify(more), more] as const))(
    "sums %s to the same as the requests, and counts their times",
    async (_, more) => {
      const query = { ...all, ...more };
      const rows = await totals.report(query, page);
      const exact = await reportOfRecords(opened.db, query, page);
      const seen = rows.map(({ times: _, ...row }) => row);
      expect(seen).toEqual(exact.map(({ times: _, ...row }) => row));
      expect(seen.length).toBeGreaterThan(0);
      for (const [i, { times, timed }] of rows.entries()) {
        expect(times?.firstToken.reduce((sum, count) => sum + count, 0)).toBe(timed);
        expect(times).toEqual(exact[i]?.times);
      }
    },
  );

  test("counts each answer at the step of its time", async () => {
    const [row] = await totals.report({ ...all, bucket: "month" }, page);
    const ended = records.filter(({ outcome, environment }) => outcome === "completed" && environment === "live");
    for (const step of timeBounds.keys()) {
      expect(row?.times?.total[step]).toBe(ended.filter(({ durationMs }) => timeStep(durationMs) === step).length);
    }
  });

  test("pages without gaps, and reads older days from the roll-ups", async () => {
    const query: UsageQuery = { ...all, groupBy: ["model"] };
    const whole = await totals.report(query, page);
    const paged: UsageRow[] = [];
    for (;;) {
      const next = await totals.report(query, { after: paged.at(-1), limit: 2 });
      paged.push(...next);
      if (next.length < 2) break;
    }
    expect(paged).toEqual(whole);
    const since = new SqlUsageReports(opened.db, undefined, { totalsSince: january + day });
    const mixed = await since.report({ ...query, bucket: "hour" }, page);
    expect(mixed.map(({ times }) => times === undefined)).toEqual(mixed.map(({ start }) => start < january + day));
    const figures = (rows: UsageRow[]) => rows.map(({ times: _, ...row }) => row);
    expect(figures(mixed)).toEqual(figures(await totals.report({ ...query, bucket: "hour" }, page)));
  });

  databases.only("sqlite", "finds the rows by the primary key alone", async () => {
    const plans = new Set<string>();
    const reports = new SqlUsageReports(explained(opened.db, plans), undefined, { totalsSince: 0 });
    for (const more of asked) await reports.report({ ...all, ...more }, page);
    const key = "account_id=? AND environment=? AND span=? AND kind=? AND start>? AND start<?";
    const found = [...plans].filter((plan) => !plan.startsWith("USE TEMP"));
    expect(found).toEqual([`SEARCH usage_totals USING PRIMARY KEY (${key})`]);
  });

  databases.only("postgres", "finds the rows by the primary key alone", async () => {
    await opened.db.unsafe("ANALYZE usage_totals");
    const plans = new Set<string>();
    const reports = new SqlUsageReports(explainedByPostgres(opened.db, plans), undefined, { totalsSince: 0 });
    for (const more of asked) await reports.report({ ...all, ...more }, page);
    expect([...plans]).toEqual(["usage_totals_pkey"]);
  });
});
