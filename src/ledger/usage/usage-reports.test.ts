// Usage reports: correct sums, pages without gaps or duplicates, and no more reads than a page needs.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { withinMs } from "../../../tests/support/long.ts";
import { explainedByPostgres } from "../../../tests/support/query-plans.ts";
import { type UsageQuery, type UsageRow, usageBuckets, usageGroups } from "../../domain/usage/usage.ts";
import { bucketEnd, bucketStart } from "../../domain/usage/usage-bucket.ts";
import type { Database } from "../../storage/sql/database.ts";
import { SqlUsageReports } from "./usage-reports.ts";

const day = 86_400;
const january = Date.UTC(2026, 0, 1) / 1000;
const untagged = usageGroups.filter((group) => group !== "tag");
const march = Date.UTC(2026, 2, 1) / 1000;

let opened: TestDatabase;
let db: Database;
let reports: SqlUsageReports;

onEachDatabase((databases) => {
  beforeAll(async () => {
    opened = await databases.open();
    ({ db } = opened);
    reports = new SqlUsageReports(db);
  });

  afterAll(async () => {
    await opened.close();
  });

  interface Used {
    at: number;
    account: string;
    environment: string;
    key: string;
    app: string;
    model: string;
    requests: number;
    promptTokens: number;
    completionTokens: number;
    nanoUsd: number;
    errors: number;
    timed: number;
    firstTokenMs: number;
    generatedTokens: number;
    generationMs: number;
  }

  const used = (more: Partial<Used>): Used => ({
    at: january,
    account: "acct_1",
    environment: "live",
    key: "key_1",
    app: "",
    model: "m",
    requests: 1,
    promptTokens: 10,
    completionTokens: 3,
    nanoUsd: 7,
    errors: 0,
    timed: 0,
    firstTokenMs: 0,
    generatedTokens: 0,
    generationMs: 0,
    ...more,
  });

  /** Adds usage to the roll-ups by hour and by day, as the ledger does. */
  async function add(all: readonly Used[]): Promise<void> {
    const each = all.flatMap((one) =>
      (["hour", "day"] as const).map((span) => ({
        account_id: one.account,
        environment: one.environment,
        span,
        start: bucketStart(span, one.at),
        key_id: one.key,
        app_id: one.app,
        model: one.model,
        requests: one.requests,
        prompt_tokens: one.promptTokens,
        completion_tokens: one.completionTokens,
        nano_usd: one.nanoUsd,
        errors: one.errors,
        timed: one.timed,
        first_token_ms: one.firstTokenMs,
        generated_tokens: one.generatedTokens,
        generation_ms: one.generationMs,
      })),
    );
    // A PostgreSQL statement cannot change a row twice, so equal rows are merged.
    const together = Map.groupBy(each, (row) =>
      JSON.stringify([row.account_id, row.environment, row.span, row.start, row.key_id, row.app_id, row.model]),
    );
    const rows = [...together.values()].map((same) =>
      same.reduce((sum, row) => ({
        ...row,
        requests: sum.requests + row.requests,
        prompt_tokens: sum.prompt_tokens + row.prompt_tokens,
        completion_tokens: sum.completion_tokens + row.completion_tokens,
        nano_usd: sum.nano_usd + row.nano_usd,
        errors: sum.errors + row.errors,
        timed: sum.timed + row.timed,
        first_token_ms: sum.first_token_ms + row.first_token_ms,
        generated_tokens: sum.generated_tokens + row.generated_tokens,
        generation_ms: sum.generation_ms + row.generation_ms,
      })),
    );
    for (let i = 0; i < rows.length; i += 500) {
      await db`INSERT INTO usage_rollups ${db(rows.slice(i, i + 500))}
      ON CONFLICT (account_id, environment, span, start, key_id, app_id, model) DO UPDATE SET
        requests = usage_rollups.requests + excluded.requests,
        prompt_tokens = usage_rollups.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = usage_rollups.completion_tokens + excluded.completion_tokens,
        nano_usd = usage_rollups.nano_usd + excluded.nano_usd, errors = usage_rollups.errors + excluded.errors,
        timed = usage_rollups.timed + excluded.timed,
        first_token_ms = usage_rollups.first_token_ms + excluded.first_token_ms,
        generated_tokens = usage_rollups.generated_tokens + excluded.generated_tokens,
        generation_ms = usage_rollups.generation_ms + excluded.generation_ms`;
    }
  }

  function query(more: Partial<UsageQuery>): UsageQuery {
    return {
      accountId: "acct_1",
      environment: "live",
      start: january,
      end: march,
      bucket: "day",
      groupBy: [],
      ...more,
    };
  }

  async function all(asked: UsageQuery, limit = 10_000): Promise<UsageRow[]> {
    const rows: UsageRow[] = [];
    for (;;) {
      const page = await reports.report(asked, { after: rows.at(-1), limit });
      rows.push(...page);
      if (page.length < limit) return rows;
      if (rows.length > 100_000) throw new Error("The pages have no end.");
    }
  }

  describe("sums of usage", () => {
    beforeEach(async () => void (await db`DELETE FROM usage_rollups`));

    test("sums every figure of a bucket, without requests outside of the range", async () => {
      await add([
        used({ at: january - 1 }),
        used({ at: january, key: "key_1", requests: 2, promptTokens: 100, completionTokens: 7, nanoUsd: 5, errors: 1 }),
        used({ at: january + 3_599, key: "key_2", requests: 1, promptTokens: 1, completionTokens: 2, nanoUsd: 3 }),
        used({ at: january + 60, key: "key_1", timed: 1, firstTokenMs: 20, generatedTokens: 300, generationMs: 4_000 }),
        used({ at: january + 60, key: "key_2", timed: 2, firstTokenMs: 30, generatedTokens: 500, generationMs: 6_000 }),
        used({ at: january + 3_600 }),
        used({ at: january + 7_200 }),
      ]);
      const rows = await all(query({ bucket: "hour", end: january + 7_200 }));
      expect(rows).toEqual([
        {
          start: january,
          end: january + 3_600,
          groups: {},
          requests: 5,
          promptTokens: 121,
          completionTokens: 15,
          ...{ cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, unpriced: 0 },
          nanoUsd: 22,
          exactNanoUsd: 22n,
          errors: 1,
          timed: 3,
          firstTokenMs: 50,
          generatedTokens: 800,
          generationMs: 10_000,
        },
        {
          start: january + 3_600,
          end: january + 7_200,
          groups: {},
          requests: 1,
          promptTokens: 10,
          completionTokens: 3,
          ...{ cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, unpriced: 0 },
          nanoUsd: 7,
          exactNanoUsd: 7n,
          errors: 0,
          timed: 0,
          firstTokenMs: 0,
          generatedTokens: 0,
          generationMs: 0,
        },
      ]);
    });

    test("sums by calendar months of any length", async () => {
      await add([used({ at: march - 1 }), used({ at: january + 31 * day }), used({ at: january + 31 * day - 1 })]);
      const rows = await all(query({ bucket: "month" }));
      expect(rows.map(({ start, end, requests }) => [start, end, requests])).toEqual([
        [january, january + 31 * day, 1],
        [january + 31 * day, march, 2],
      ]);
    });

    test("returns no row without usage", async () => {
      for (const bucket of usageBuckets) expect(await all(query({ bucket }))).toEqual([]);
    });

    test("returns a missing app as null, first", async () => {
      await add([used({ app: "app_1" }), used({})]);
      const rows = await all(query({ groupBy: ["app"] }));
      expect(rows.map(({ groups }) => groups)).toEqual([{ app: null }, { app: "app_1" }]);
    });

    test("sorts rows by the requested groups in order", async () => {
      await add([used({ key: "a", model: "y" }), used({ key: "b", model: "x" })]);
      const order = async (groupBy: UsageQuery["groupBy"]) =>
        (await all(query({ groupBy }))).map(({ groups }) => Object.values(groups).sort().join(""));
      expect(await order(["key", "model"])).toEqual(["ay", "bx"]);
      expect(await order(["model", "key"])).toEqual(["bx", "ay"]);
    });
  });

  describe("owners of usage", () => {
    test("never counts another account, environment, key or app", async () => {
      await db`DELETE FROM usage_rollups`;
      await add([
        used({ requests: 1 }),
        used({ account: "acct_2", requests: 10 }),
        used({ environment: "test", requests: 100 }),
        used({ key: "key_2", requests: 1_000 }),
        used({ app: "app_1", requests: 10_000 }),
        used({ model: "other", requests: 100_000 }),
      ]);
      const requests = async (more: Partial<UsageQuery>) => (await all(query(more))).map((row) => row.requests);
      for (const bucket of usageBuckets) {
        expect(await requests({ bucket })).toEqual([111_001]);
        expect(await requests({ bucket, environment: "test" })).toEqual([100]);
        expect(await requests({ bucket, keyId: "key_2" })).toEqual([1_000]);
        expect(await requests({ bucket, appId: "app_1" })).toEqual([10_000]);
        expect(await requests({ bucket, keyId: "key_2", appId: "app_1" })).toEqual([]);
        expect(await requests({ bucket, model: "other" })).toEqual([100_000]);
        expect(await requests({ bucket, model: "other", keyId: "key_1" })).toEqual([100_000]);
        expect(await requests({ bucket, model: "other", keyId: "key_2" })).toEqual([]);
        expect(await requests({ bucket, model: "' OR '1'='1" })).toEqual([]);
        expect(await requests({ bucket, accountId: "acct_2", keyId: "key_2" })).toEqual([]);
      }
    });

    test("treats group names as values, never as a part of a statement", async () => {
      const model = "'); DROP TABLE usage_rollups; --";
      await add([used({ account: "acct_3", model }), used({ account: "acct_3", model: "z" })]);
      const asked = query({ accountId: "acct_3", groupBy: ["model"] });
      expect((await all(asked, 1)).map((row) => row.groups.model)).toEqual([model, "z"]);
      expect(await all(query({ accountId: "acct_3' OR '1'='1" }))).toEqual([]);
    });
  });

  describe("pages of usage", () => {
    beforeAll(async () => {
      await db`DELETE FROM usage_rollups`;
      const random = mulberry32(7);
      const pick = (count: number) => Math.floor(random() * count);
      await add(
        Array.from({ length: 1_500 }, () =>
          used({
            at: january + pick(45 * 24) * 3_600,
            key: `key_${pick(3)}`,
            app: pick(2) === 0 ? "" : "app_1",
            model: `m${pick(3)}`,
            requests: pick(5),
          }),
        ),
      );
    });

    test("returns the same rows in pages of any size as in one page", async () => {
      const groupings = [[], ["model"], ["app", "key"], ["environment"], usageGroups] as const;
      for (const bucket of usageBuckets) {
        for (const groupBy of groupings) {
          const asked = query({ bucket, groupBy });
          const whole = await all(asked);
          expect(whole.length).toBeGreaterThan(0);
          for (const limit of [whole.length, 97, ...(whole.length < 200 ? [1] : [])]) {
            expect(await all(asked, limit)).toEqual(whole);
          }
        }
      }
    });

    test("neither repeats nor omits rows when requests arrive between pages", async () => {
      const asked = query({ groupBy: ["model"] });
      const first = await reports.report(asked, { after: undefined, limit: 10 });
      const rest = await reports.report(asked, { after: first.at(-1), limit: 10_000 });
      await add([used({ at: january, model: "a-new-one" })]);
      expect(await reports.report(asked, { after: first.at(-1), limit: 10_000 })).toEqual(rest);
    });

    test("begins at the range's start after an earlier row, and returns nothing after a later one", async () => {
      const asked = query({ groupBy: ["model"], start: january + day });
      const before = { start: january, groups: { model: "m1" } };
      expect(await reports.report(asked, { after: before, limit: 10_000 })).toEqual(await all(asked));
      const behind = { start: january + 2 * day, groups: { model: "" } };
      expect(await reports.report({ ...asked, end: behind.start }, { after: behind, limit: 10 })).toEqual([]);
    });
  });

  describe("reports over 200,000 rows of roll-ups", () => {
    const keys = 20;
    const models = 8;
    const days = 50;

    beforeAll(async () => {
      await db`DELETE FROM usage_rollups`;
      for (const [span, seconds, count] of [
        ["hour", 3_600, days * 24],
        ["day", day, days],
      ] as const) {
        // The rows are inserted by key, so that no statement exceeds the statement timeout.
        for (let k = 0; k < keys; k++)
          await db.unsafe(`
        INSERT INTO usage_rollups (account_id, environment, span, start, key_id, app_id, model, requests, prompt_tokens,
          completion_tokens, nano_usd, errors)
        WITH RECURSIVE b (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM b WHERE i + 1 < ${count}),
          m (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM m WHERE i + 1 < ${models})
        SELECT 'acct_1', 'live', '${span}', ${january} + b.i * ${seconds}, 'key_${String(k).padStart(36, "0")}', '',
          'model-' || CAST(m.i AS TEXT), 10, 1000, 100, 50, 1
        FROM b, m`);
      }
    });

    const asked: readonly [name: string, query: Partial<UsageQuery>][] = [
      ["30 days by day and model", { end: january + 30 * day, groupBy: ["model"] }],
      ["a week by hour and key", { bucket: "hour", end: january + 7 * day, groupBy: ["key"] }],
      ["all hours", { bucket: "hour" }],
      ["all months by key and model", { bucket: "month", groupBy: ["key", "model"] }],
      ["all hours of one key", { bucket: "hour", keyId: `key_${"7".padStart(36, "0")}` }],
    ];
    test.each(asked)("reads a page of %s in less than a second", async (_name, more) => {
      const startedMs = performance.now();
      const rows = await reports.report(query(more), { after: undefined, limit: 1_001 });
      expect(performance.now() - startedMs).toBeLessThan(withinMs(1_000));
      expect(rows.length).toBeGreaterThan(1);
    });

    test("lets other work run during a long page", async () => {
      let turns = 0;
      const timer = setInterval(() => turns++, 0);
      await reports.report(query({ bucket: "hour" }), { after: undefined, limit: 10_000 });
      clearInterval(timer);
      expect(turns).toBeGreaterThan(10);
    });

    databases.only(
      "sqlite",
      "finds the rows of every query by the primary key or the index of keys or apps, and by time",
      async () => {
        const plans = new Set<string>();
        const explained = new SqlUsageReports(explaining(plans));
        for (const bucket of usageBuckets) {
          for (const groupBy of [[], ["model"], ["key"], untagged] as const) {
            const after = { start: january, groups: { model: "m", key: "k", environment: "live", app: null } };
            await explained.report(query({ bucket, groupBy }), { after, limit: 10 });
            await explained.report(query({ bucket, groupBy, model: "m" }), { after, limit: 10 });
            await explained.report(query({ bucket, groupBy, appId: "app_1" }), { after, limit: 10 });
          }
        }
        expect([...plans]).toEqual([
          "SEARCH usage_rollups USING PRIMARY KEY (account_id=? AND environment=? AND span=? AND start>? AND start<?)",
          "SEARCH usage_rollups USING INDEX usage_rollups_by_app (app_id=? AND span=? AND start>? AND start<?)",
        ]);
        plans.clear();
        for (const groupBy of [[], ["model"], ["account"], ["account", "key"]] as const) {
          await explained.report(query({ accountId: null, groupBy }), { after: undefined, limit: 10 });
        }
        const ofAll = "SEARCH usage_rollups USING INDEX usage_rollups_by_time (<expr>=? AND start>? AND start<?)";
        expect([...plans].filter((plan) => plan.includes("usage_rollups"))).toEqual([ofAll]);
        plans.clear();
        for (const more of [{}, { tag: "t" }, { appId: "app_1" }, { keyId: "key_1" }]) {
          await explained.report(query({ groupBy: ["tag", "model"], ...more }), { after: undefined, limit: 10 });
        }
        const searches = [...plans].filter((plan) => /^(SEARCH|SCAN) usage_/.test(plan));
        const time = "span=? AND start>? AND start<?";
        expect(searches.sort()).toEqual([
          `SEARCH usage_rollups USING INDEX usage_rollups_by_app (app_id=? AND ${time})`,
          `SEARCH usage_rollups USING INDEX usage_rollups_by_key (key_id=? AND ${time})`,
          `SEARCH usage_rollups USING PRIMARY KEY (account_id=? AND environment=? AND ${time})`,
          `SEARCH usage_tag_rollups USING INDEX usage_tag_rollups_by_app (app_id=? AND ${time})`,
          `SEARCH usage_tag_rollups USING INDEX usage_tag_rollups_by_key (key_id=? AND ${time})`,
          `SEARCH usage_tag_rollups USING PRIMARY KEY (account_id=? AND environment=? AND ${time})`,
        ]);
        plans.clear();
        for (const bucket of usageBuckets) {
          await explained.report(query({ bucket, groupBy: ["model"], keyId: "key_1" }), {
            after: undefined,
            limit: 10,
          });
        }
        expect([...plans]).toEqual([
          "SEARCH usage_rollups USING INDEX usage_rollups_by_key (key_id=? AND span=? AND start>? AND start<?)",
        ]);
      },
    );

    databases.only("postgres", "finds the rows of every query by an index", async () => {
      await db.unsafe("ANALYZE usage_rollups");
      const plans = new Set<string>();
      const explained = new SqlUsageReports(explainedByPostgres(db, plans));
      for (const bucket of usageBuckets) {
        for (const groupBy of [[], ["model"], untagged] as const) {
          const after = { start: january, groups: { model: "m", key: "k", environment: "live", app: null } };
          const week = query({ bucket, groupBy, end: january + 7 * day });
          await explained.report(week, { after, limit: 10 });
          await explained.report({ ...week, model: "m" }, { after, limit: 10 });
          await explained.report({ ...week, appId: "app_1" }, { after, limit: 10 });
          await explained.report({ ...week, keyId: "key_1" }, { after: undefined, limit: 10 });
        }
      }
      expect([...plans].sort()).toEqual(["usage_rollups_by_app", "usage_rollups_by_key", "usage_rollups_pkey"]);
    });

    test("sums months to the same as days and hours", async () => {
      const totals = [];
      for (const bucket of usageBuckets) {
        const rows = await all(query({ bucket, groupBy: ["key"] }));
        totals.push(rows.reduce((sum, row) => sum + row.requests, 0));
        expect(rows.every((row) => bucketEnd(bucket, row.start) === row.end)).toBe(true);
      }
      const perRow = keys * models * 10;
      expect(totals).toEqual([perRow * days * 24, perRow * days, perRow * days]);
    });
  });

  /** Makes a database that answers each query with no rows, and adds its query plan to `plans`. */
  function explaining(plans: Set<string>): Database {
    return new Proxy(db, {
      apply(target, self, [text, ...values]: [TemplateStringsArray, ...unknown[]]) {
        if (!text[0]?.trimStart().startsWith("SELECT")) return Reflect.apply(target, self, [text, ...values]);
        const strings = [`EXPLAIN QUERY PLAN ${text[0]}`, ...text.slice(1)];
        Object.defineProperty(strings, "raw", { value: strings });
        return Reflect.apply(target, self, [strings, ...values]).then((steps: { detail: string }[]) => {
          for (const { detail } of steps) if (!detail.startsWith("USE TEMP")) plans.add(detail);
          return [];
        });
      },
    });
  }

  /** Returns a generator of the same random numbers in every run (mulberry32). */
  function mulberry32(seed: number): () => number {
    let state = seed;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
    };
  }
});
