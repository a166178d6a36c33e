// Statements against the ledger's own rows: whatever a month holds, lines and total are its sums to the last nano-USD.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachDatabase, type TestDatabase } from "../../tests/support/databases.ts";
import { accountFor, keyRecordFor } from "../../tests/support/principal.ts";
import { seeded } from "../../tests/support/seeded.ts";
import { usdText } from "../base/money.ts";
import { type StatementGroup, type StatementQuery, statementGroups } from "../domain/usage/statement.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import { SqlUsageReports } from "../ledger/usage/usage-reports.ts";
import { catchUp } from "../ledger/usage/usage-rows.ts";
import { openUsageWriter } from "../ledger/usage/usage-writer.ts";
import { addedUp, Statements } from "../policy/records/statements.ts";
import { accounts, apiKeys } from "../storage/tables/credential-rows.ts";
import { SqlUsageParties } from "../storage/tables/usage-parties.ts";

const start = Date.UTC(2026, 1, 1) / 1000;
const end = Date.UTC(2026, 2, 1) / 1000;
/** A million USD: together such requests are more than a double has digits for. */
const most = 1e15;

/** Whose each credential is; one of them is known to no table any more. */
const persons: Readonly<Record<string, string | null>> = {
  ...{ key_ada: "usr_ada", key_ada_revoked: "usr_ada", mbr_ada_live: "usr_ada", grt_bob: "usr_bob" },
  ...{ key_account: null, key_gone: null },
};
const keyIds = Object.keys(persons);

onEachDatabase((databases) => {
  let opened: TestDatabase;

  beforeEach(async () => {
    opened = await databases.open();
    const { db } = opened;
    await db`INSERT INTO accounts ${db(["acct_1", "acct_2"].map((id) => accounts.row(accountFor({ id }))))}`;
    const credentials = keyIds
      .filter((id) => id !== "key_gone")
      .map((id) =>
        keyRecordFor({
          id,
          personId: persons[id] ?? null,
          revoked: id.endsWith("revoked"),
          revokedAt: null,
          appId: null,
        }),
      );
    await db`INSERT INTO api_keys ${db(credentials.map(apiKeys.row))}`;
  });

  afterEach(() => opened.close());

  const statements = (maxLines?: number) =>
    new Statements({
      reports: new SqlUsageReports(opened.db),
      parties: new SqlUsageParties(opened.db),
      ...(maxLines === undefined ? {} : { maxLines }),
    });
  const query = (more: Partial<StatementQuery> = {}): StatementQuery => ({
    ...{ accountId: "acct_1", environment: "live", start, end, groupBy: [] },
    ...more,
  });

  /** Requests at and around the month's boundaries, of other accounts and environments among them. */
  function someRecords(seed: number, count: number): UsageRecord[] {
    const random = seeded(seed);
    const whole = (below: number) => Math.floor(random() * below);
    const pick = <Value>(values: readonly Value[]): Value => values[whole(values.length)] as Value;
    const boundaries = [start - 1, start, end - 1, end, start + 86_399, start + 86_400];
    return Array.from({ length: count }, (_, i) => {
      const promptTokens = whole(100_000);
      const completionTokens = whole(10_000);
      const cachedTokens = whole(promptTokens);
      const keyId = pick(keyIds);
      return {
        requestId: `req_${seed}_${i}`,
        at: random() < 0.3 ? pick(boundaries) : start - 86_400 + whole(30 * 86_400),
        accountId: random() < 0.9 ? "acct_1" : "acct_2",
        keyId,
        appId: keyId === "grt_bob" ? "app_1" : null,
        environment: random() < 0.9 ? "live" : "test",
        operation: "chat",
        model: pick(["m", "n", "o/p"]),
        stream: false,
        outcome: pick(["completed", "failed", "cancelled"]),
        errorCode: null,
        ...{ promptTokens, completionTokens, estimated: false },
        parts: {
          cachedTokens,
          cacheWriteTokens: whole(promptTokens - cachedTokens),
          reasoningTokens: whole(completionTokens),
        },
        nanoUsd: pick([null, 0, 1, whole(1_000_000_000), most - whole(1_000)]),
        ...{ capped: false, upstream: "up", durationMs: 100, firstTokenMs: null, queueMs: 0 },
        tags: pick([undefined, undefined, ["team-a"], ["team-a", "team-b"]]),
      };
    });
  }

  async function insert(records: readonly UsageRecord[]): Promise<void> {
    const writer = await openUsageWriter(opened.db);
    await writer.insert(records);
    await catchUp(writer);
    writer.close();
  }

  const groupValue = (record: UsageRecord, group: StatementGroup): string | null => {
    if (group === "person") return persons[record.keyId] ?? null;
    return { key: record.keyId, model: record.model, app: record.appId, tag: null }[group];
  };

  /** What the raw records add up to, by the same groups. */
  function expected(records: readonly UsageRecord[], groupBy: readonly StatementGroup[]): Map<string, bigint> {
    const sums = new Map<string, bigint>();
    for (const record of records) {
      const tags = groupBy.includes("tag") && record.tags?.length ? record.tags : [null];
      for (const tag of tags) {
        const values = groupBy.map((group) => (group === "tag" ? tag : groupValue(record, group)));
        const name = JSON.stringify(values);
        sums.set(name, (sums.get(name) ?? 0n) + BigInt(record.nanoUsd ?? 0));
      }
    }
    return sums;
  }

  const within = (records: readonly UsageRecord[]) =>
    records.filter(
      ({ at, accountId, environment }) => accountId === "acct_1" && environment === "live" && at >= start && at < end,
    );

  const groupings: readonly (readonly StatementGroup[])[] = [
    ...[[], ...statementGroups.map((group) => [group])],
    ...([["key", "model"], ["person", "app"], ["person", "tag"], [...statementGroups]] as const),
  ];

  describe("sums of statements", () => {
    test.each([1, 2, 3])(
      "sums the month's records in lines and total by any groups, also once they are deleted (%d)",
      async (seed) => {
        const records = someRecords(seed, 400);
        await insert(records);
        const month = within(records);
        const total = month.reduce((sum, { nanoUsd }) => sum + BigInt(nanoUsd ?? 0), 0n);
        expect(total).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER));
        for (const isDeleted of [false, true]) {
          if (isDeleted) await opened.db`DELETE FROM usage_records`;
          for (const groupBy of groupings) {
            const statement = await statements().read(query({ groupBy }));
            const sums = expected(month, groupBy);
            const lines = statement.lines.map(({ groups, nanoUsd }) => [
              JSON.stringify(groupBy.map((group) => groups[group] ?? null)),
              nanoUsd,
            ]);
            expect(new Map(lines as [string, bigint][])).toEqual(groupBy.length === 0 ? new Map() : sums);
            expect([groupBy, statement.total.nanoUsd]).toEqual([groupBy, total]);
            expect(statement.total).toMatchObject({
              requests: month.length,
              promptTokens: sumOf(month, (one) => one.promptTokens),
              completionTokens: sumOf(month, (one) => one.completionTokens),
              cachedTokens: sumOf(month, (one) => one.parts?.cachedTokens ?? 0),
              cacheWriteTokens: sumOf(month, (one) => one.parts?.cacheWriteTokens ?? 0),
              reasoningTokens: sumOf(month, (one) => one.parts?.reasoningTokens ?? 0),
              unpriced: month.filter(({ nanoUsd }) => nanoUsd === null).length,
              errors: month.filter(({ outcome }) => outcome === "failed").length,
            });
            const overlaps = groupBy.includes("tag");
            expect(statement.overlaps).toBe(overlaps);
            if (overlaps || groupBy.length === 0) continue;
            expect(addedUp(statement.lines)).toEqual(statement.total);
          }
        }
      },
      60_000,
    );

    test("counts each request in one of two consecutive months", async () => {
      const records = someRecords(4, 100).map((record) => ({
        ...record,
        accountId: "acct_1",
        environment: "live" as const,
      }));
      await insert(records);
      const before = { start: Date.UTC(2026, 0, 1) / 1000, end: start };
      const after = { start: end, end: Date.UTC(2026, 3, 1) / 1000 };
      const totals = await Promise.all(
        [before, {}, after].map(async (time) => (await statements().read(query({ ...time, groupBy: ["key"] }))).total),
      );
      expect(sumOf(totals, ({ requests }) => requests)).toBe(records.length);
    });

    test("merges lines beyond the bound into one that adds up with the others", async () => {
      const records = someRecords(5, 200);
      await insert(records);
      const { lines, others, total } = await statements(3).read(query({ groupBy: ["key", "model"] }));
      expect(lines).toHaveLength(3);
      expect(addedUp([...lines, ...(others ? [others] : [])])).toEqual(total);
      expect(total.requests).toBe(within(records).length);
    });
  });

  test("reads a day with more lines than one page, by keys, apps and tags", async () => {
    // Two pages and one line more.
    const records = someRecords(7, 2_001).map((record, i) => ({
      ...record,
      ...{ at: start, accountId: "acct_1", environment: "live" as const, keyId: `key_${i}` },
    }));
    for (let from = 0; from < records.length; from += 1_000) await insert(records.slice(from, from + 1_000));
    for (const groupBy of [["key"], ["key", "app", "tag"]] as const) {
      const { lines, others, total } = await statements().read(query({ groupBy }));
      const sums = lines.map(({ groups, nanoUsd }) => [
        JSON.stringify(groupBy.map((group) => groups[group] ?? null)),
        nanoUsd,
      ]);
      expect(new Map(sums as [string, bigint][])).toEqual(expected(records, groupBy));
      expect([others, total.requests]).toEqual([null, records.length]);
    }
  });

  test("limits a statement to one user, key, app or tag on request", async () => {
    const records = someRecords(6, 300);
    await insert(records);
    const parts = [
      { part: { personId: "usr_ada" }, is: (one: UsageRecord) => persons[one.keyId] === "usr_ada" },
      { part: { keyId: "key_account" }, is: (one: UsageRecord) => one.keyId === "key_account" },
      { part: { appId: "app_1" }, is: (one: UsageRecord) => one.appId === "app_1" },
      { part: { tag: "team-b" }, is: (one: UsageRecord) => one.tags?.includes("team-b") ?? false },
      {
        part: { personId: "usr_ada", tag: "team-a" },
        is: (one: UsageRecord) => persons[one.keyId] === "usr_ada" && (one.tags?.includes("team-a") ?? false),
      },
      { part: { personId: "usr_ada", keyId: "key_account" }, is: () => false },
    ];
    for (const { part, is } of parts) {
      for (const groupBy of [[], ["model"], ["tag"]] as const) {
        const { total } = await statements().read(query({ ...part, groupBy }));
        expect([part, total.requests]).toEqual([part, within(records).filter(is).length]);
      }
    }
  });

  test("keeps names of deleted users and keys in statements", async () => {
    const { db } = opened;
    const parties = new SqlUsageParties(db);
    const membership = keyRecordFor({
      id: "mbr_cy_live",
      kind: "membership",
      personId: "usr_cy",
      name: "cy@example.test",
    });
    await db`INSERT INTO api_keys ${db(apiKeys.row(membership))}`;
    expect(await parties.people("acct_1", ["usr_cy", "usr_nobody"])).toEqual(new Map([["usr_cy", "cy@example.test"]]));
    await db`INSERT INTO people ${db({ id: "usr_cy", email: "cy@example.test", name: "Cy", email_proven: 1, is_operator: 0, created_at: 1 })}`;
    expect(await parties.people("acct_1", ["usr_cy"])).toEqual(new Map([["usr_cy", "Cy"]]));
    expect(await parties.people("acct_2", ["usr_cy"])).toEqual(new Map());
    expect(
      (await parties.credentials({ accountId: "acct_1", environment: "live" }, keyIds)).get("key_ada_revoked")?.name,
    ).toBe("A key");
    expect(await parties.credentials({ accountId: "acct_2", environment: "live" }, keyIds)).toEqual(new Map());
  });
});

function sumOf<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

test("writes amounts of money with all nine decimals", () => {
  expect([0n, 1n, 1_500_000_000n, 2n ** 63n].map((nano) => usdText(nano, 9))).toEqual([
    ...["0.000000000", "0.000000001", "1.500000000", "9223372036.854775808"],
  ]);
});
