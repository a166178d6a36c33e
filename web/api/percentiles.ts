// Computes percentiles of the times of answers for several rows together. The API counts answers by step for that.
import type { UsageRow } from "./types.ts";

/** The percentiles of the time to the first token and to the end of the answer; null if they were not measured. */
export type Times = UsageRow["percentiles"];
type Percentiles = NonNullable<Times>["total_ms"];

/** The factor between two steps: the API counts four steps for each power of ten. */
const step = 10 ** (1 / 4);
const firstStep = 20;
const lastStep = Math.round(firstStep * step ** 17);

/** Returns the percentiles of all rows together. Rows without counts do not take part. */
export function timesOf(rows: readonly Times[]): Times {
  const known = rows.filter((row) => row !== null);
  const [first] = known;
  if (first === undefined || known.length === 1) return first ?? null;
  return {
    first_token_ms: together(known.map(({ first_token_ms: times }) => times)),
    total_ms: together(known.map(({ total_ms: times }) => times)),
  };
}

function together(all: readonly Percentiles[]): Percentiles {
  const sums = new Map<number, number>();
  for (const { up_to_ms, answers } of all.flatMap((one) => one?.counts ?? [])) {
    const bound = up_to_ms ?? Number.POSITIVE_INFINITY;
    sums.set(bound, (sums.get(bound) ?? 0) + answers);
  }
  const counts = [...sums].sort(([one], [other]) => one - other);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  const at = (percent: number) => {
    let remaining = (total * percent) / 100;
    for (const [bound, count] of counts) {
      if (remaining > count) {
        remaining -= count;
        continue;
      }
      if (!Number.isFinite(bound)) return lastStep;
      const from = bound <= firstStep ? 0 : bound / step;
      return Math.round(from + ((bound - from) * remaining) / count);
    }
    return lastStep;
  };
  const steps = counts.map(([bound, answers]) => ({ up_to_ms: Number.isFinite(bound) ? bound : null, answers }));
  return { p50: at(50), p95: at(95), p99: at(99), counts: steps };
}
