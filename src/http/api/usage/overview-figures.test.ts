// Tests of the sums, steps and rankings that an overview makes of the rows of a report.
import { expect, test } from "bun:test";
import type { UsageQuery, UsageReports, UsageRow } from "../../../domain/usage/usage.ts";
import { figuresToWire, rankedGroups, stepSums, sumsUntil } from "./overview-figures.ts";

const hour = 3_600;
const query: UsageQuery = {
  ...{ accountId: "acct_1", environment: "live", start: 0, end: 4 * hour, bucket: "hour", groupBy: [] },
};
const steps = { start: 0, step: 2 * hour, count: 2 };

/** Returns a row whose figures all differ. */
function row(start: number, changes: Partial<UsageRow> = {}): UsageRow {
  return {
    ...{ start, end: start + hour, groups: {}, requests: 2, promptTokens: 4, completionTokens: 6, errors: 8 },
    ...{ cachedTokens: 10, cacheWriteTokens: 12, reasoningTokens: 14, nanoUsd: 16, exactNanoUsd: 16n, unpriced: 18 },
    ...{ timed: 20, firstTokenMs: 2_200, generatedTokens: 24, generationMs: 2_600 },
    ...changes,
  };
}

function reportsOf(rows: readonly UsageRow[]): UsageReports {
  return { report: async () => [...rows] };
}

test("scales every figure of the last bucket to its elapsed part", async () => {
  const rows = [row(0), row(hour), row(2 * hour)];
  expect(await sumsUntil(reportsOf(rows), query, hour + hour / 2)).toEqual({
    ...{ requests: 3, promptTokens: 6, completionTokens: 9, errors: 12 },
    ...{ cachedTokens: 15, cacheWriteTokens: 18, reasoningTokens: 21, nanoUsd: 24, unpriced: 27 },
    ...{ timed: 30, firstTokenMs: 3_300, generatedTokens: 36, generationMs: 3_900 },
  });
});

test("adds the rows of each step and leaves out rows outside all steps", async () => {
  const rows = [row(-hour), row(0), row(hour, { requests: 5 }), row(2 * hour), row(4 * hour)];
  const { all, ...sums } = await stepSums(reportsOf(rows), query, steps).then((sums) => ({
    all: sums.all.requests,
    ...sums.toWire(),
  }));
  expect(all).toBe(9);
  expect(sums).toMatchObject({ requests: [7, 2], total_tokens: [20, 10], first_token_ms: [110, 110], errors: [16, 8] });
});

test("shows no mean without measurements", () => {
  const figures = { requests: 2, total_tokens: 10, cost: 16e-9, errors: 8, first_token_ms: 110 };
  expect(figuresToWire(row(0))).toMatchObject(figures);
  expect(figuresToWire(row(0, { timed: 0 })).first_token_ms).toBeNull();
});

test("ranks the eight largest groups for each chart", async () => {
  const rows = Array.from({ length: 10 }, (_, i) =>
    row(0, { groups: { model: `m${i}` }, requests: i + 1, errors: 10 - i, nanoUsd: i === 0 ? 1 : 0 }),
  );
  const { groups, ranking, count } = await rankedGroups(reportsOf(rows), query, "model", steps);
  const named = (places: readonly number[]) => places.map((place) => groups[place]?.id);
  expect(count).toBe(10);
  expect(named(ranking.requests)).toEqual(["m9", "m8", "m7", "m6", "m5", "m4", "m3", "m2"]);
  expect(named(ranking.errors)).toEqual(["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
  expect(named(ranking.cost)).toEqual(["m0"]);
});
