// Counts of answers by their time, in fixed steps. Unlike percentiles, counts of several hours or models can be added.
import type { Percentiles } from "./speed.ts";

/** Upper bounds in milliseconds: four steps for each power of ten, from 20 ms to 6 minutes. A last step has no bound. */
export const timeBounds: readonly number[] = Array.from({ length: 18 }, (_, i) => Math.round(20 * 10 ** (i / 4)));
export const timeSteps = timeBounds.length + 1;

/**
 * The number of answers in each step of `timeBounds`. `firstToken` counts streams by the time to their first token,
 * `total` counts completed answers by the time to their end.
 */
export interface TimeCounts {
  firstToken: number[];
  total: number[];
}

export function countsOf(firstToken: (step: number) => number, total: (step: number) => number): TimeCounts {
  const steps = Array.from({ length: timeSteps }, (_, step) => step);
  return { firstToken: steps.map(firstToken), total: steps.map(total) };
}

export function timeStep(ms: number): number {
  const step = timeBounds.findIndex((bound) => ms <= bound);
  return step < 0 ? timeBounds.length : step;
}

/** Converts counts as the API returns them to counts by step of `timeBounds`. */
export function countsByStep(counts: readonly { up_to_ms: number | null; answers: number }[]): number[] {
  const steps = Array.from({ length: timeSteps }, () => 0);
  for (const { up_to_ms: bound, answers } of counts) {
    const step = bound === null ? timeBounds.length : timeStep(bound);
    steps[step] = (steps[step] ?? 0) + answers;
  }
  return steps;
}

/** Adds `more` to `counts`. Returns the result, which is a new object if `counts` is undefined. */
export function addCounts(counts: TimeCounts | undefined, more: TimeCounts | undefined): TimeCounts | undefined {
  if (more === undefined) return counts;
  if (counts === undefined) return { firstToken: [...more.firstToken], total: [...more.total] };
  for (let i = 0; i < timeSteps; i++) {
    counts.firstToken[i] = (counts.firstToken[i] ?? 0) + (more.firstToken[i] ?? 0);
    counts.total[i] = (counts.total[i] ?? 0) + (more.total[i] ?? 0);
  }
  return counts;
}

/** Returns percentiles within a step's bounds of the exact ones; undefined without answers. */
export function percentilesOfCounts(counts: readonly number[]): Percentiles | undefined {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return undefined;
  const at = (percent: number) => {
    let remaining = (all * percent) / 100;
    for (const [step, count] of counts.entries()) {
      const [from, to] = [timeBounds[step - 1] ?? 0, timeBounds[step]];
      if (remaining <= count && count > 0)
        return Math.round(to === undefined ? from : from + ((to - from) * remaining) / count);
      remaining -= count;
    }
    return timeBounds.at(-1) ?? 0;
  };
  return { p50: at(50), p95: at(95), p99: at(99) };
}
