// Tests that the dashboard computes the percentiles of several rows as the server does.
import { expect, test } from "bun:test";
import { percentilesOfCounts, timeBounds } from "../../src/domain/usage/time-counts.ts";
import { type Times, timesOf } from "../../web/api/percentiles.ts";

/** A row with these numbers of answers by step, as the API sends it. */
function row(counts: readonly number[]): Times {
  const percentiles = percentilesOfCounts(counts);
  const steps = counts.map((answers, step) => ({ up_to_ms: timeBounds[step] ?? null, answers }));
  const total = percentiles && { ...percentiles, counts: steps.filter(({ answers }) => answers > 0) };
  return { first_token_ms: null, total_ms: total ?? null };
}

test("adds up the counts of rows to the percentiles that the server computes", () => {
  const rows = Array.from({ length: 9 }, (_, i) => timeBounds.map((_bound, step) => (step * 7 + i * 5) % 11));
  const all = timeBounds.map((_, step) => rows.reduce((sum, counts) => sum + (counts[step] ?? 0), 0));
  const { counts: _, ...percentiles } = timesOf(rows.map(row))?.total_ms ?? { counts: [] };
  expect(percentiles).toEqual(percentilesOfCounts(all) ?? {});
  expect(timesOf(rows.map(row))?.first_token_ms).toBeNull();
});

test("leaves out rows without counts, and has no percentiles without any", () => {
  const one = row([0, 4]);
  expect(timesOf([null, one])).toEqual(one);
  expect(timesOf([null, null])).toBeNull();
  expect(timesOf([row([]), row([])])).toEqual({ first_token_ms: null, total_ms: null });
});
