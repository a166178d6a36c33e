// The list of requests: the right requests in the right order, pages without gaps or duplicates, and bounded reads for
// each page.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../tests/support/databases.ts";
import { explainedByPostgres } from "../../tests/support/query-plans.ts";
import type { Clock } from "../base/clock.ts";
import type { RequestFilter, RequestPosition } from "../domain/usage/request-log.ts";
import { type UsageRecord, usageOutcomes } from "../domain/usage/usage.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlRequestLog } from "./request-log.ts";
import { catchUp } from "./usage/usage-rows.ts";
import { openUsageWriter } from "./usage/usage-writer.ts";

const day = 86_400;
const january = Date.UTC(2026, 0, 1) / 1000;
/** Time stands still, so that no page ends early. */
const patient: Pick<Clock, "monotonicMs"> = { monotonicMs: () => 0 };

let opened: TestDatabase;
let db: Database;
let log: SqlRequestLog;

onEachDatabase((databases) => {
  beforeAll(async () => {
    opened = await databases.open();
    ({ db } = opened);
    log = new SqlRequestLog(db, patient);
  });

  afterAll(async () => {
    await opened.close();
  });

  let made = 0;

  function record(more: Partial<UsageRecord> = {}): UsageRecord {
    return {
      requestId: `req_${String(made++).padStart(8, "0")}`,
      at: january,
      accountId: "acct_1",
      keyId: "key_1",
      appId: null,
      environment: "live",
      operation: "chat",
      model: "m",
      stream: false,
      outcome: "completed",
      errorCode: null,
      promptTokens: 10,
      completionTokens: 3,
      estimated: false,
      nanoUsd: 7,
      capped: false,
      upstream: "up",
      durationMs: 100,
      firstTokenMs: null,
      queueMs: 0,
      ...more,
    };
  }

  /** Replaces all records by these, and writes them as the ledger does. */
  async function only(records: readonly UsageRecord[]): Promise<void> {
    await db`DELETE FROM usage_records`;
    await db`DELETE FROM usage_rollups`;
    await add(records);
  }

  async function add(records: readonly UsageRecord[]): Promise<void> {
    const writer = await openUsageWriter(db);
    for (let i = 0; i < records.length; i += 1_000) await writer.insert(records.slice(i, i + 1_000), 10_000);
    await catchUp(writer);
    writer.close();
  }

  const filter = ({ accountId, ...more }: Partial<RequestFilter> = {}) => ({
    accountId: accountId ?? "acct_1",
    environment: "live" as const,
    start: 0,
    end: january + 366 * day,
    ...more,
  });

  async function all(asked: RequestFilter, limit = 100, of = log): Promise<UsageRecord[]> {
    const records: UsageRecord[] = [];
    let after: RequestPosition | undefined;
    for (let pages = 0; pages < 20_000; pages++) {
      const page = await of.list(asked, { after, limit });
      expect(page.records.length).toBeLessThanOrEqual(limit);
      records.push(...page.records);
      if (page.next === null) return records;
      after = page.next;
    }
    throw new Error("The pages have no end.");
  }

  const ids = (records: readonly UsageRecord[]) => records.map(({ requestId }) => requestId);

  /** Returns the expected list, computed from all records. */
  function expected(records: readonly UsageRecord[], asked: RequestFilter): string[] {
    const { accountId, environment, appId, keyId, model, outcome, stream, start, end } = asked;
    return records
      .filter(
        (one) =>
          one.accountId === accountId &&
          one.environment === environment &&
          (appId === undefined || one.appId === appId) &&
          (keyId === undefined || one.keyId === keyId) &&
          (model === undefined || one.model === model) &&
          (outcome === undefined || one.outcome === outcome) &&
          (stream === undefined || one.stream === stream) &&
          one.at >= start &&
          one.at < end,
      )
      .sort((a, b) => b.at - a.at || (a.requestId < b.requestId ? 1 : -1))
      .map(({ requestId }) => requestId);
  }

  test("returns a record whole, in the list and alone", async () => {
    const whole = record({
      appId: "app_1",
      environment: "test",
      operation: "embedding",
      stream: true,
      outcome: "failed",
      errorCode: "upstream_error",
      estimated: true,
      capped: true,
      durationMs: 12_345,
      firstTokenMs: 1_234,
      queueMs: 123,
    });
    const bare = record({ at: january - 1, environment: "test", nanoUsd: null, upstream: null });
    await only([whole, bare]);
    expect(await all(filter({ environment: "test" }))).toEqual([whole, bare]);
    expect(await log.find({ accountId: "acct_1", environment: "test" }, whole.requestId)).toEqual(whole);
  });

  test("finds a request only for its owner", async () => {
    const one = record({ appId: "app_1" });
    await only([one]);
    const owner = { accountId: "acct_1", environment: "live" } as const;
    expect(await log.find({ ...owner, appId: "app_1" }, one.requestId)).toEqual(one);
    const strangers = [{ accountId: "acct_2" }, { environment: "test" as const }, { appId: "app_2" }];
    for (const stranger of strangers) expect(await log.find({ ...owner, ...stranger }, one.requestId)).toBeUndefined();
    expect(await log.find(owner, "req_none")).toBeUndefined();
  });

  test("lists the records of all accounts by an upstream that answered or failed them", async () => {
    const step = { upstreamModel: "x", model: "m", reason: null, startedMs: 0, durationMs: 1 };
    const failed = { ...step, upstream: "one", result: "refused", status: 500 } as const;
    const answered = { ...step, upstream: "two", result: "answered", status: null } as const;
    const records = [
      record({ upstream: "one" }),
      record({ accountId: "acct_2", keyId: "key_2", upstream: "two", trail: [failed, answered], at: january + 1 }),
      record({ accountId: "acct_2", upstream: null, outcome: "failed", trail: [failed], at: january + 2 }),
      record({ accountId: "acct_2", upstream: "two", appId: "app_1", at: january + 3 }),
      record({ environment: "test", upstream: "one", at: january + 4 }),
    ];
    await only(records);
    const [first, moved, lost, other] = ids(records);
    const listed = async (more: Partial<RequestFilter>) => {
      const newest = await all({ ...filter(more), accountId: null }, 1);
      expect(newest).toEqual(await all({ ...filter(more), accountId: null }));
      return ids(newest);
    };
    expect(await listed({})).toEqual([other, lost, moved, first] as string[]);
    expect(await listed({ upstream: "one" })).toEqual([lost, moved, first] as string[]);
    expect(await listed({ upstream: "one", outcome: "failed" })).toEqual([lost] as string[]);
    expect(await listed({ upstream: "two", model: "m" })).toEqual([other, moved] as string[]);
    expect(await listed({ keyId: "key_2" })).toEqual([moved] as string[]);
    expect(await listed({ appId: "app_1" })).toEqual([other] as string[]);
    expect(await listed({ upstream: 'o"ne' })).toEqual([]);
    expect(await log.find(null, moved ?? "")).toMatchObject({ accountId: "acct_2" });
  });

  test("treats names as values, never as a part of a statement", async () => {
    const model = "'); DROP TABLE usage_records; --";
    const one = record({ model, keyId: model, appId: model });
    await only([one, record()]);
    expect(await all(filter({ model, keyId: model, appId: model }))).toEqual([one]);
    expect(await all(filter({ accountId: "acct_1' OR '1'='1" }))).toEqual([]);
  });

  test("returns one page without a next one if there are no records", async () => {
    await only([]);
    expect(await log.list(filter(), { after: undefined, limit: 10 })).toEqual({ records: [], next: null });
  });

  test("returns no next page after a full last page", async () => {
    await only([record(), record(), record({ accountId: "acct_2" })]);
    expect((await log.list(filter(), { after: undefined, limit: 2 })).next).toBeNull();
    expect((await log.list(filter(), { after: undefined, limit: 1 })).next).not.toBeNull();
  });

  describe("pages of thousands of unevenly spread requests", () => {
    const records: UsageRecord[] = [];
    const random = mulberry32(11);
    const pick = (count: number) => Math.floor(random() * count);

    beforeAll(async () => {
      const environments = ["live", "live", "test"] as const;
      for (let i = 0; i < 6_000; i++) {
        // The records have busy seconds, quiet days, and ids that are not ordered by time.
        const at = january + (pick(2) === 0 ? pick(3) : pick(60 * day));
        records.push(
          record({
            requestId: `req_${pick(1e9)}_${i}`,
            at,
            accountId: `acct_${pick(3) === 0 ? 2 : 1}`,
            keyId: `key_${pick(3)}`,
            appId: pick(3) === 0 ? `app_${pick(2)}` : null,
            environment: environments[pick(3)] ?? "live",
            model: `m${pick(4)}`,
            stream: pick(2) === 0,
            outcome: usageOutcomes[pick(usageOutcomes.length)] ?? "completed",
          }),
        );
      }
      // Another account has more records in one second than one query scans.
      for (let i = 0; i < 9_000; i++) records.push(record({ at: january + 30 * day, accountId: "acct_busy" }));
      await only(records);
    });

    const filters: readonly Partial<RequestFilter>[] = [
      {},
      { environment: "test" },
      { accountId: "acct_2", keyId: "key_2" },
      { keyId: "key_1", model: "m3" },
      { model: "m0", outcome: "failed" },
      { outcome: "cancelled", stream: true },
      { stream: false, appId: "app_1" },
      { start: january + 1, end: january + 2 },
      { start: january + 10 * day + 17, end: january + 40 * day - 13 },
      { keyId: "key_none" },
      { accountId: "acct_none" },
    ];

    test.each(filters)("lists matching requests completely in pages of any size: %p", async (more) => {
      const asked = filter(more);
      const right = expected(records, asked);
      for (const limit of [200, 33, ...(right.length < 150 ? [1] : [])])
        expect(ids(await all(asked, limit))).toEqual(right);
    });

    test.each(filters)("lists requests correctly in pages that end early on a slow database: %p", async (more) => {
      let now = 0;
      const slow = new SqlRequestLog(db, { monotonicMs: () => (now += 45) });
      const asked = filter(more);
      expect(ids(await all(asked, 200, slow))).toEqual(expected(records, asked));
    });

    test("lists requests correctly with roll-ups of an earlier version without times", async () => {
      await db`UPDATE usage_rollups SET first_at = 0, last_at = 253402300799`;
      for (const more of filters) {
        const asked = filter(more);
        expect(ids(await all(asked, 200))).toEqual(expected(records, asked));
      }
    });
  });

  test("keeps the whole hour of an earlier version's roll-up when a record is added", async () => {
    const old = record({ at: january + 3_000 });
    await only([old]);
    await db`UPDATE usage_rollups SET first_at = 0, last_at = 253402300799`;
    const later = record({ at: january + 1_000 });
    await add([later]);
    expect(await all(filter())).toEqual([old, later]);
  });

  test("neither repeats nor hides records that arrive between two pages", async () => {
    const before = Array.from({ length: 30 }, (_, i) => record({ at: january + i * 600 }));
    await only(before);
    const first = await log.list(filter(), { after: undefined, limit: 10 });
    await add([
      record({ at: january + 20 * 600 + 1 }),
      record({ at: january + 29 * 600 }),
      record({ at: january + day }),
    ]);
    const rest = await log.list(filter(), { after: first.next ?? undefined, limit: 100 });
    const shown = ids([...first.records, ...rest.records]);
    expect(new Set(shown).size).toBe(shown.length);
    for (const id of ids(before)) expect(shown).toContain(id);
  });

  describe("the request log beside a busy account", () => {
    const sparse: UsageRecord[] = [];

    beforeAll(async () => {
      await only([]);
      // Several statements, as each may only take some seconds.
      for (let first = 0; first < 200_000; first += 40_000) {
        await db.unsafe(`
      INSERT INTO usage_records (request_id, at, account_id, key_id, environment, operation, model, outcome,
        prompt_tokens, completion_tokens, estimated, duration_ms, nano_usd)
      WITH RECURSIVE n (i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${first + 40_000})
      SELECT 'req_busy_' || substr('00000000', 1, 8 - length(CAST(i AS TEXT))) || CAST(i AS TEXT), ${january} + i * 10, 'acct_busy', 'key_busy', 'live', 'chat', 'm', 'completed',
        1, 1, 0, 1, 1 FROM n`);
      }
      for (const [span, seconds] of Object.entries({ hour: 3_600, day })) {
        await db.unsafe(`
        INSERT INTO usage_rollups (account_id, environment, span, start, key_id, app_id, model, requests, prompt_tokens,
          completion_tokens, nano_usd, errors, first_at, last_at)
        SELECT account_id, environment, '${span}', at - at % ${seconds}, key_id, '', model, count(*), count(*), count(*),
          count(*), 0, min(at), max(at) FROM usage_records GROUP BY 1, 2, 4, 5, 7`);
      }
      for (let i = 0; i < 23; i++) sparse.push(record({ at: january + i * day + 40_000 }));
      await add(sparse);
    });

    /** Makes a database that counts how many rows each query may scan, by the times in the query. */
    function watched(db: Database, plans: Set<string>): { db: Database; reads: number } {
      const seen = { db, reads: 0 };
      seen.db = new Proxy(db, {
        apply(target, self, [text, ...values]: [TemplateStringsArray, ...unknown[]]) {
          if (!text[0]?.trimStart().startsWith("SELECT")) return Reflect.apply(target, self, [text, ...values]);
          seen.reads++;
          if (databases.dialect !== "sqlite") return Reflect.apply(target, self, [text, ...values]);
          const strings = [`EXPLAIN QUERY PLAN ${text[0]}`, ...text.slice(1)];
          Object.defineProperty(strings, "raw", { value: strings });
          return (async () => {
            const steps: { detail: string }[] = await Reflect.apply(target, self, [strings, ...values]);
            for (const { detail } of steps) if (!detail.startsWith("USE TEMP")) plans.add(detail);
            return Reflect.apply(target, self, [text, ...values]);
          })();
        },
      });
      return seen;
    }

    test("reads the page of a quiet account with a few queries per request, whatever lies between", async () => {
      const seen = watched(db, new Set());
      const page = await new SqlRequestLog(seen.db, patient).list(filter(), { after: undefined, limit: 50 });
      expect(ids(page.records)).toEqual(ids(sparse.toReversed()));
      expect(seen.reads).toBeLessThan(sparse.length * 3 + 5);
    });

    databases.only("sqlite", "finds the rows of every query by an index and by time", async () => {
      const plans = new Set<string>();
      const explained = new SqlRequestLog(watched(db, plans).db, patient);
      const busy = filter({ accountId: "acct_busy" });
      const { next } = await explained.list(busy, { after: undefined, limit: 10 });
      await explained.list({ ...busy, outcome: "failed", stream: true }, { after: next ?? undefined, limit: 10 });
      await explained.list({ ...busy, model: "m", appId: "app_1" }, { after: undefined, limit: 10 });
      await explained.list({ ...busy, keyId: "key_busy" }, { after: next ?? undefined, limit: 10 });
      await explained.find(busy, "req_1");
      await explained.list({ ...busy, accountId: null, model: "m" }, { after: undefined, limit: 10 });
      const ofModel = "usage_records_by_model (model=? AND environment=? AND <expr>>? AND <expr><?)";
      expect([...plans].sort()).toEqual([
        `SEARCH usage_records USING COVERING INDEX ${ofModel}`,
        "SEARCH usage_records USING COVERING INDEX usage_records_by_time (at>? AND at<?)",
        "SEARCH usage_records USING INDEX sqlite_autoindex_usage_records_1 (request_id=?)",
        `SEARCH usage_records USING INDEX ${ofModel}`,
        "SEARCH usage_records USING INDEX usage_records_by_time (at>? AND at<?)",
        "SEARCH usage_rollups USING COVERING INDEX usage_rollups_by_key (key_id=? AND span=? AND start<?)",
        "SEARCH usage_rollups USING INDEX usage_rollups_by_key (key_id=? AND span=? AND start>? AND start<?)",
        "SEARCH usage_rollups USING PRIMARY KEY (account_id=? AND environment=? AND span=? AND start<?)",
        "SEARCH usage_rollups USING PRIMARY KEY (account_id=? AND environment=? AND span=? AND start>? AND start<?)",
      ]);
    });

    databases.only("postgres", "finds the rows of every query by an index", async () => {
      await db.unsafe("ANALYZE usage_rollups");
      await db.unsafe("ANALYZE usage_records");
      const plans = new Set<string>();
      const explained = new SqlRequestLog(explainedByPostgres(db, plans), patient);
      const busy = filter({ accountId: "acct_busy" });
      const { next } = await explained.list(busy, { after: undefined, limit: 10 });
      await explained.list({ ...busy, model: "m", appId: "app_1" }, { after: undefined, limit: 10 });
      await explained.list({ ...busy, keyId: "key_busy" }, { after: next ?? undefined, limit: 10 });
      await explained.list(filter(), { after: undefined, limit: 10 });
      await explained.find(busy, "req_1");
      expect([...plans].filter((plan) => plan.startsWith("all of usage_records"))).toEqual([]);
      expect([...plans]).toContain("usage_records_by_time");
      expect([...plans]).toContain("usage_records_pkey");
      // The index by time would have many rows of other models.
      const ofModel = new Set<string>();
      const all = { ...busy, accountId: null, model: "m" };
      await new SqlRequestLog(explainedByPostgres(db, ofModel), patient).list(all, { after: undefined, limit: 10 });
      expect([...ofModel]).toEqual(["usage_records_by_model"]);
    });

    test("ends a search without matches in time, tells where to continue, and lets other work run", async () => {
      let now = 0;
      const slow = new SqlRequestLog(db, { monotonicMs: () => (now += 1) });
      const asked = filter({ accountId: "acct_busy", outcome: "cancelled" });
      let turns = 0;
      let turn = setImmediate(function tick() {
        turns++;
        turn = setImmediate(tick);
      });
      const first = await slow.list(asked, { after: undefined, limit: 50 });
      clearImmediate(turn);
      expect(first).toEqual({ records: [], next: { at: expect.any(Number), requestId: "" } });
      expect(now).toBeLessThan(100);
      expect(turns).toBeGreaterThan(10);
      const second = await slow.list(asked, { after: first.next ?? undefined, limit: 50 });
      expect(second.next?.at).toBeLessThan(first.next?.at ?? 0);
    });
  });

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
