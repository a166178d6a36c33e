// The percentiles of the times of answers, in words.
import type { Times } from "../../api/percentiles.ts";
import { duration } from "../words/figures.ts";

type Percentiles = NonNullable<Times>["total_ms"];

/** Returns "p50 320 ms, p95 900 ms, p99 1.2 s", or undefined if nothing was measured. */
export function percentileText(times: Pick<NonNullable<Percentiles>, "p50" | "p95" | "p99"> | null | undefined) {
  return times ? `p50 ${duration(times.p50)}, p95 ${duration(times.p95)}, p99 ${duration(times.p99)}` : undefined;
}
