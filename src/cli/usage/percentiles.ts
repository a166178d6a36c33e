// The percentiles of the times of answers in the output of commands.
import { z } from "zod";
import { addCounts, countsByStep, percentilesOfCounts, type TimeCounts } from "../../domain/usage/time-counts.ts";
import { formatCount } from "../terminal/figures.ts";

const percentiles = z
  .object({ counts: z.array(z.object({ up_to_ms: z.number().nullable(), answers: z.number() })) })
  .nullish();

/** The percentiles of a row of usage, in the API's form. Servers of earlier versions send none. */
export const rowTimes = z.object({ first_token_ms: percentiles, total_ms: percentiles }).nullish();
export type RowTimes = z.infer<typeof rowTimes>;

/** Returns the sum of all rows' counts. Undefined if no row has counts. */
export function timesOfRows(rows: readonly { percentiles?: RowTimes }[]): TimeCounts | undefined {
  return rows.reduce<TimeCounts | undefined>((sum, { percentiles: times }) => {
    if (times == null) return sum;
    const { first_token_ms: first, total_ms: total } = times;
    return addCounts(sum, { firstToken: countsByStep(first?.counts ?? []), total: countsByStep(total?.counts ?? []) });
  }, undefined);
}

/** Returns `320/900/1,200 ms`: p50, p95 and p99; `-` if nothing was measured. */
export function percentilesText(counts: readonly number[] | undefined): string {
  const times = counts && percentilesOfCounts(counts);
  return times ? `${[times.p50, times.p95, times.p99].map(formatCount).join("/")} ms` : "-";
}

/** Returns a sentence with the percentiles; undefined if nothing was measured. */
export function timesSentence(times: TimeCounts | undefined): string | undefined {
  if (times === undefined || percentilesOfCounts(times.total) === undefined) return undefined;
  return `p50/p95/p99: first token ${percentilesText(times.firstToken)}, whole answer ${percentilesText(times.total)}`;
}
