// Tests percentiles from counts by step: near the exact ones, and the same whether counts or requests are added up.
import { expect, test } from "bun:test";
import { percentilesOf } from "./speed.ts";
import { addCounts, countsByStep, percentilesOfCounts, timeBounds, timeStep, timeSteps } from "./time-counts.ts";

/** A fixed spread of times between 5 ms and 400 s. */
const times = Array.from({ length: 5_000 }, (_, i) => Math.round(5 * 80_000 ** (((i * 7_919) % 5_000) / 5_000)));

function counted(values: readonly number[]): number[] {
  return countsByStep(values.map((ms) => ({ up_to_ms: timeBounds[timeStep(ms)] ?? null, answers: 1 })));
}

test("computes percentiles from counts within one step of the exact ones", () => {
  const exact = percentilesOf([...times]);
  const found = percentilesOfCounts(counted(times));
  for (const name of ["p50", "p95", "p99"] as const) {
    expect((found?.[name] ?? 0) / (exact?.[name] ?? 1)).toBeGreaterThan(10 ** -0.25);
    expect((found?.[name] ?? 0) / (exact?.[name] ?? 1)).toBeLessThan(10 ** 0.25);
  }
});

test("gets the same percentiles from added counts as from all requests together", () => {
  const [some, others] = [times.slice(0, 900), times.slice(900)];
  const sum = [some, others].reduce<ReturnType<typeof addCounts>>(
    (all, part) => addCounts(all, { firstToken: counted(part), total: counted(part) }),
    undefined,
  );
  expect(percentilesOfCounts(sum?.total ?? [])).toEqual(percentilesOfCounts(counted(times)));
});

test("has no percentiles without answers, and the last bound for answers beyond all steps", () => {
  expect(percentilesOfCounts(counted([]))).toBeUndefined();
  expect(percentilesOfCounts(counted([9_999_999]))).toEqual({ p50: 355_656, p95: 355_656, p99: 355_656 });
  expect(counted([9_999_999])).toHaveLength(timeSteps);
});
