// Usage by tag: a request with several tags counts under each tag and once in total, in the spool, the database, its
// sums and reports.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../../tests/support/databases.ts";
import { systemClock } from "../../base/clock.ts";
import type { RequestPage, RequestPosition } from "../../domain/usage/request-log.ts";
import type { SpanTotals, TotalsOwner, UsageBegin, UsageEnd, UsageRecord, UsageRow } from "../../domain/usage/usage.ts";
import { waitBriefly } from "../../storage/sql/database.ts";
import { SpoolLedger } from "../ledger.ts";
import { SqlRequestLog } from "../request-log.ts";
import { UsageColumns } from "./usage-columns.ts";
import { SqlUsageReports } from "./usage-reports.ts";
import { UsageSums } from "./usage-sums.ts";

/** Midnight in UTC. */
const day = 1_799_971_200;
const span = { start: day, end: day + 2 * 86_400 } as const;

let opened: TestDatabase;
let ledger: SpoolLedger;

function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const tags = ["team-a", "team-b", "project:x", "user:1@example.com"] as const;

interface Request extends UsageBegin {
  tokens: number;
}

/**
 * Makes requests, half of them without tags and the others with up to three. They have many keys, so that SQLite
 * gathers their sums for later.
 */
function requests(count: number, keys: number): Request[] {
  const below = numbers(count + keys);
  return Array.from({ length: count }, (_, i) => {
    const some = below(2) === 0 ? [] : tags.filter(() => below(2) === 0).slice(0, 3);
    return {
      ...{
        requestId: `req_${keys}_${i}`,
        at: day + below(2 * 86_400),
        accountId: "acct_1",
        keyId: `key_${below(keys)}`,
      },
      ...{ appId: below(3) === 0 ? "app_1" : null, environment: "live", operation: "chat", model: `m${below(2)}` },
      ...{ stream: false, tags: some.length === 0 ? undefined : some, tokens: below(1_000) },
    } as const;
  });
}

function endOf(tokens: number): UsageEnd {
  return {
    ...{ promptTokens: tokens, completionTokens: 1, estimated: false, outcome: "completed", errorCode: null },
    ...{ nanoUsd: 3 * tokens, capped: false, upstream: "up", durationMs: 5, firstTokenMs: null, queueMs: 0 },
  };
}

function sumOf(some: readonly Request[]): number[] {
  const tokens = some.reduce((sum, one) => sum + one.tokens, 0);
  return [some.length, tokens, some.length, 3 * tokens];
}

function figures({ requests: count, promptTokens, completionTokens, nanoUsd }: UsageRow): number[] {
  return [count, promptTokens, completionTokens, nanoUsd];
}

onEachDatabase((databases) => {
  const log = { info() {}, warn() {}, error() {} };
  const open = () => {
    const directory = join(opened.directory, "spool");
    return SpoolLedger.open({ db: opened.db, directory, log, clock: systemClock, drainMs: 10_000 });
  };

  beforeEach(async () => {
    opened = await databases.open();
    await waitBriefly(opened.db);
    ledger = await open();
  });

  afterEach(async () => {
    await ledger.close();
    await opened.close();
  });

  function settle(all: readonly Request[]): void {
    for (const { tokens, ...begin } of all) ledger.begin(begin).settle(endOf(tokens));
  }

  async function totals(more: Partial<TotalsOwner>): Promise<SpanTotals | undefined> {
    const owner = { type: "account", id: "acct_1", environment: "live", since: day, until: span.end } as const;
    let found: SpanTotals | undefined;
    await ledger.readTotals({ ...owner, ...more }, (one) => {
      found = one;
    });
    return found;
  }

  test.each([3, 600])(
    "reports each request under each of its tags, untagged ones apart, and once in total, with %i keys",
    async (keys) => {
      const all = requests(1_500, keys);
      settle(all);
      await ledger.flush();
      const reports = new SqlUsageReports(opened.db, () => ledger.catchUp());
      const base = { accountId: "acct_1", environment: "live", ...span, bucket: "month" } as const;
      const read = (more: object) =>
        reports.report({ ...base, groupBy: [], ...more }, { after: undefined, limit: 10_000 });
      const [whole] = await read({});
      expect(whole && figures(whole)).toEqual(sumOf(all));
      const byTag = await read({ groupBy: ["tag"] });
      expect(byTag.map(({ groups }) => groups.tag)).toEqual([null, ...[...tags].sort()]);
      for (const row of byTag) {
        const { tag } = row.groups;
        const those = all.filter((one) => (tag ? one.tags?.some((other) => other === tag) : one.tags === undefined));
        expect(figures(row)).toEqual(sumOf(those));
        if (tag) expect((await read({ tag })).map(figures)).toEqual([sumOf(those)]);
      }
      const ofApp = (one: Request) => one.appId === "app_1" && one.model === "m1";
      for (const row of await read({ groupBy: ["tag"], appId: "app_1", model: "m1" })) {
        const { tag } = row.groups;
        const those = all.filter(ofApp).filter((one) => (tag ? one.tags?.some((t) => t === tag) : !one.tags));
        expect(figures(row)).toEqual(sumOf(those));
      }
      // The report by hour in small pages has the same sums.
      const pages: UsageRow[] = [];
      for (let after: UsageRow | undefined; ; ) {
        const query = { ...base, bucket: "hour", groupBy: ["tag"] } as const;
        const page = await reports.report(query, { after, limit: 7 });
        pages.push(...page);
        after = page.at(-1);
        if (page.length < 7) break;
      }
      for (const { groups, ...row } of byTag) {
        const hours = pages.filter((one) => one.groups.tag === groups.tag);
        expect(hours.reduce((sum, one) => sum + one.nanoUsd, 0)).toBe(row.nanoUsd);
      }
    },
  );

  test("totals an owner's usage under a tag to the second, pending, stored or rolled up", async () => {
    const all = requests(700, 400);
    settle(all.slice(0, 500));
    await ledger.flush();
    settle(all.slice(500));
    for (const since of [day, day + 3_600, day + 12_345]) {
      for (const tag of tags) {
        const those = all.filter((one) => one.at >= since && one.tags?.some((other) => other === tag));
        const tokens = those.reduce((sum, one) => sum + one.tokens + 1, 0);
        expect(await totals({ since, tag })).toMatchObject({ requests: those.length, tokens });
        const ofKey = those.filter((one) => one.keyId === "key_7");
        expect((await totals({ since, tag, type: "key", id: "key_7" }))?.requests).toBe(ofKey.length);
        const ofModel = those.filter((one) => one.model === "m0");
        expect((await totals({ since, tag, models: ["m0"] }))?.requests).toBe(ofModel.length);
      }
    }
    expect(await totals({ tag: "team" })).toMatchObject({ requests: 0, firstAt: undefined });
  });

  test("leaves the tags of settled and running requests to the next process after a crash", async () => {
    const [first, second] = requests(40, 2).filter((one) => one.tags !== undefined);
    if (!first || !second) throw new Error("too few have tags");
    const parts = { cachedTokens: 5, cacheWriteTokens: 0, reasoningTokens: 0 };
    const details = { ...parts, details: { searches: 2 } };
    for (const [id, reported] of [
      ["a", undefined],
      ["b", parts],
      ["c", details],
    ] as const) {
      await ledger.begin({ ...first, requestId: id }).settle({ ...endOf(3), parts: reported });
    }
    ledger.begin({ ...first, requestId: "d", tags: undefined }).settle({ ...endOf(3), parts: details });
    const entry = ledger.begin({ ...second, requestId: "open" });
    await entry.begun;
    entry.progress({ promptTokens: 4, completionTokens: 2, estimated: true }, 6);
    await Bun.sleep(20);
    ledger = await open();
    const rows = await opened.db`SELECT request_id, tags, details FROM usage_records ORDER BY request_id`;
    const asText = (value: unknown) => (value === null ? null : JSON.parse(String(value)));
    expect(rows.map((row: Record<string, unknown>) => [row["request_id"], asText(row["tags"])])).toEqual([
      ...[
        ["a", first.tags],
        ["b", first.tags],
        ["c", first.tags],
      ],
      ...[
        ["d", null],
        ["open", second.tags],
      ],
    ]);
    expect(rows.map((row: Record<string, unknown>) => asText(row["details"]))).toEqual([
      ...[null, null, { searches: 2 }],
      ...[{ searches: 2 }, null],
    ]);
    const [rolled] = await opened.db`SELECT sum(requests) AS n FROM usage_tag_rollups WHERE span = 'day' AND tag = ''`;
    expect(Number(rolled.n)).toBe(4);
  });

  test("lists requests by tag, each with all of its tags", async () => {
    const all = requests(60, 3);
    settle(all);
    await ledger.flush();
    const history = new SqlRequestLog(opened.db, systemClock, () => ledger.catchUp());
    for (const tag of [...tags, "team", "a"]) {
      const filter = { accountId: "acct_1", environment: "live", tag, ...span } as const;
      const records: UsageRecord[] = [];
      // A page ends early if too many rows were scanned for it, or for too long.
      for (let after: RequestPosition | undefined | null = undefined; after !== null; ) {
        const page: RequestPage = await history.list(filter, { after, limit: 100 });
        records.push(...page.records);
        after = page.next;
      }
      const those = all.filter((one) => one.tags?.some((other) => other === tag));
      expect(new Map(records.map((one) => [one.requestId, one.tags]))).toEqual(
        new Map(those.map((one) => [one.requestId, one.tags])),
      );
    }
  });
});

test("writes sums by tag so that taking them away leaves nothing", () => {
  const sums = new UsageSums("hour");
  const records = requests(200, 5).map(({ tokens, ...begin }) => ({ ...begin, ...endOf(tokens) }));
  sums.add(UsageColumns.of(records));
  const order = Array.from({ length: sums.size }, (_, sum) => sum);
  expect(order.filter((sum) => sums.isByTag(sum)).length).toBeGreaterThan(20);
  sums.addText(sums.textTakingAway(order));
  expect(sums.size).toBe(order.length);
  expect(order.every((sum) => sums.isEmpty(sum))).toBe(true);
});
