// The JSON of answer speeds.
import { z } from "zod";
import { percentilesOfCounts, type TimeCounts, timeBounds } from "../../../domain/usage/time-counts.ts";
import { tokensPerSecond } from "../../../domain/usage/usage.ts";

const digits = 100;

export const firstTokenMs = z
  .number()
  .nullable()
  .describe(
    "Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.",
  );

export const speed = z
  .number()
  .nullable()
  .describe("Tokens per second of generation, after the first token. null if too little was streamed.");

/** Rounds to two decimals, because measurements are not more precise. */
export function rounded(value: number): number {
  return Math.round(value * digits) / digits;
}

export function shownSpeed(tokens: number, ms: number): number | null {
  const value = tokensPerSecond(tokens, ms);
  return value === null ? null : rounded(value);
}

const percentilesShape = z
  .object({
    ...{ p50: z.int(), p95: z.int(), p99: z.int() },
    counts: z
      .array(
        z.object({
          up_to_ms: z
            .int()
            .nullable()
            .describe("The upper bound of the step in milliseconds. null: longer than all steps."),
          answers: z.int(),
        }),
      )
      .describe(
        "Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.",
      ),
  })
  .nullable();

export const timesShape = z
  .object({ first_token_ms: percentilesShape, total_ms: percentilesShape })
  .nullable()
  .describe(
    "Milliseconds within which 50, 95 and 99 % of the answers came: the first token of streams, and the end of all completed answers. They are computed from the counts, so they may be off by a part of a step. null: not stored for these groups or filters, or this time.",
  );

/** Returns percentiles and counts, or null if the times were not counted. */
export function timesToWire(times: TimeCounts | undefined): z.infer<typeof timesShape> {
  if (!times) return null;
  return { first_token_ms: percentilesToWire(times.firstToken), total_ms: percentilesToWire(times.total) };
}

function percentilesToWire(counts: readonly number[]): z.infer<typeof percentilesShape> {
  const percentiles = percentilesOfCounts(counts);
  if (!percentiles) return null;
  const steps = counts.map((answers, step) => ({ up_to_ms: timeBounds[step] ?? null, answers }));
  return { ...percentiles, counts: steps.filter(({ answers }) => answers > 0) };
}
