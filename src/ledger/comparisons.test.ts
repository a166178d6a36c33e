// Comparisons of models: pairs of requests and shadows, and the sides of a split, with bounded reads and whatever else
// the ledger contains.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../tests/support/databases.ts";
import { type ComparisonQuery, shadowIdOf } from "../domain/usage/comparison.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import { SqlComparisons } from "./comparisons.ts";
import { catchUp } from "./usage/usage-rows.ts";
import { openUsageWriter } from "./usage/usage-writer.ts";

const january = Date.UTC(2026, 0, 1) / 1000;
const query: ComparisonQuery = { model: "old", other: "new", kind: "split", start: january, end: january + 86_400 };

onEachDatabase((databases) => {
  let opened: TestDatabase;
  let comparisons: SqlComparisons;
  let made = 0;

  beforeAll(async () => {
    opened = await databases.open();
    comparisons = new SqlComparisons(opened.db, () => Promise.resolve());
  });
  afterAll(() => opened.close());
  beforeEach(async () => {
    await opened.db`DELETE FROM usage_records`;
  });

  function record(more: Partial<UsageRecord> = {}): UsageRecord {
    return {
      ...{ requestId: `req_${String(made++).padStart(8, "0")}`, at: january, accountId: "acct_1", keyId: "key_1" },
      ...{ appId: null, environment: "live", operation: "chat", model: "old", stream: false, outcome: "completed" },
      ...{ errorCode: null, promptTokens: 10, completionTokens: 3, estimated: false, nanoUsd: 7, capped: false },
      ...{ upstream: "up", durationMs: 100, firstTokenMs: null, queueMs: 0, tags: ["asked:old"] },
      ...more,
    };
  }

  /** Makes the records of a request and of its shadow. */
  function pair(own: Partial<UsageRecord> = {}, other: Partial<UsageRecord> = {}): UsageRecord[] {
    const first = record({ tags: undefined, ...own });
    const requestId = shadowIdOf(first.requestId);
    return [
      first,
      record({ requestId, at: first.at, accountId: "acct_0", model: "new", tags: ["gateway:shadow"], ...other }),
    ];
  }

  async function add(records: readonly UsageRecord[]): Promise<void> {
    const writer = await openUsageWriter(opened.db);
    for (let i = 0; i < records.length; i += 1_000) await writer.insert(records.slice(i, i + 1_000), 10_000);
    await catchUp(writer);
    writer.close();
  }

  const both = async (changes: Partial<ComparisonQuery> = {}) => {
    const { own, other, isPartial } = await comparisons.compare({ ...query, ...changes });
    return [own.requests, other.requests, isPartial];
  };

  test("compares a split by the requested model's tag, with outcome and time of each part", async () => {
    await add([
      record(),
      record({ tags: ["team", "asked:old"], outcome: "failed", completionTokens: 0 }),
      record({ model: "new" }),
      // These records do not count: another model with the same prefix, no tag, cancelled by the client, another model,
      // and too late.
      record({ model: "new", tags: ["asked:older"] }),
      record({ model: "new", tags: undefined }),
      record({ model: "new", outcome: "cancelled" }),
      record({ model: "else" }),
      record({ model: "new", at: query.end }),
    ]);
    expect(await both()).toEqual([2, 1, false]);
    const { own } = await comparisons.compare(query);
    expect(own).toMatchObject({ errors: 1, promptTokens: 20, completionTokens: 3, nanoUsd: 14, answerTokens: 3 });
  });

  test("compares only complete pairs of a shadow, without dropped, displaced or single requests", async () => {
    await add([
      ...pair(),
      ...pair({}, { outcome: "failed", errorCode: "upstream_error" }),
      ...pair({}, { outcome: "failed", errorCode: "service_unavailable" }),
      ...pair({}, { outcome: "cancelled" }),
      ...pair({ outcome: "cancelled" }),
      record(),
      record({ model: "new", tags: ["gateway:shadow"] }),
      // These request ids are shorter than the suffix of a shadow's id.
      record({ requestId: "a", model: "new", tags: ["gateway:shadow"] }),
      record({ requestId: "b", tags: undefined }),
    ]);
    expect(await both({ kind: "shadow" })).toEqual([2, 2, false]);
  });

  test("distinguishes ids and tags with special characters of JSON and SQL", async () => {
    const model = `old"\\'%_`;
    await add([record({ model, tags: [`asked:${model}`] }), record({ model: "new", tags: [`asked:${model}`] })]);
    expect(await both({ model })).toEqual([1, 1, false]);
    expect(await both()).toEqual([0, 0, false]);
  });

  test("compares very many requests once each, even with many in one second", async () => {
    const records = Array.from({ length: 9_000 }, (_, at) =>
      record({
        at: january + (at < 5_000 ? 7 : at),
        model: at % 3 === 0 ? "new" : "old",
        durationMs: at,
        firstTokenMs: at,
      }),
    );
    await add(records);
    expect(await both()).toEqual([6_000, 3_000, false]);
    const { other } = await comparisons.compare(query);
    // The 1,500th and the 2,850th value of the series 0, 3, 6 and so on.
    expect(other.durationMs).toEqual({ p50: 3 * 1_499, p95: 3 * 2_849 });
    expect(other.firstTokenMs).toEqual(other.durationMs);
  });

  test("compares the newest 50,000 requests, and reports that it left out others", async () => {
    const records = Array.from({ length: 60_000 }, (_, at) => record({ at: january + at, durationMs: at }));
    await add(records);
    const { own, isPartial } = await comparisons.compare(query);
    expect(isPartial).toBeTrue();
    expect(own.requests).toBeGreaterThanOrEqual(50_000);
    expect(own.requests).toBeLessThan(53_000);
    expect(own.durationMs.p50).toBeGreaterThan(30_000);
  }, 60_000);
});
