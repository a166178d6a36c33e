// Figures from samples: costs, what a gateway adds, and ratios within a round.
import type { CoreResult } from "./core.ts";
import type { Sample } from "./measure.ts";
import type { ScalingPoint, ScalingResult } from "./scaling.ts";
import { median, type Spread, spread } from "./statistics.ts";

type Figure = (sample: Sample) => number;

/** Microseconds of processor time; NaN where they are not known. */
export const perRequest: Figure = ({ cpuMicros, requests }) => (cpuMicros ?? Number.NaN) / requests;
export const perChunk: Figure = ({ cpuMicros, events }) => (cpuMicros ?? Number.NaN) / events;
export const requestsPerSecond: Figure = ({ requests, seconds }) => requests / seconds;
export const chunksPerSecond: Figure = ({ events, seconds }) => events / seconds;
/** 1 where every chunk came by itself. */
export const chunksPerRead: Figure = ({ events, reads }) => events / reads;
/** Share of one processor; NaN where it is not known. */
export const busy: Figure = ({ cpuMicros, seconds }) => (cpuMicros ?? Number.NaN) / seconds / 1e6;

export function samplesOf(samples: readonly Sample[], scenario: string, target: string): Sample[] {
  return samples.filter((sample) => sample.scenario === scenario && sample.target === target);
}

/** The median over all rounds; NaN of none. */
export function middle(samples: readonly Sample[], figure: Figure): number {
  return median(samples.map(figure));
}

/** More than the mock upstream alone in the same round, in milliseconds. */
export function added({ samples }: CoreResult, which: "p50Ms" | "p99Ms"): Figure {
  return (sample) => {
    const direct = samplesOf(samples, sample.scenario, "direct").find(({ round }) => round === sample.round);
    return sample[which] - (direct?.[which] ?? Number.NaN);
  };
}

/** Round by round: what disturbed a round disturbed both. */
export function ratios(own: readonly Sample[], base: readonly Sample[], figure: Figure): Spread {
  return spread(
    own.map((sample) => {
      const other = base.find(({ round }) => round === sample.round);
      return other ? figure(sample) / figure(other) : Number.NaN;
    }),
  );
}

/** Undefined for the baseline itself, and for the mock, which is no gateway. */
export function coreRatio(core: CoreResult, scenario: string, target: string, figure: Figure): Spread | undefined {
  if (target === core.baseline || target === "direct") return undefined;
  const own = samplesOf(core.samples, scenario, target);
  const found = ratios(own, samplesOf(core.samples, scenario, core.baseline), figure);
  return Number.isFinite(found.median) ? found : undefined;
}

/**
 * The ratio to the baseline at the same place, else to the series' first point; undefined for what is compared with.
 */
export function scalingRatio(section: ScalingResult, point: ScalingPoint): Spread | undefined {
  const { points, samples, baseline } = section;
  const base =
    baseline === undefined
      ? points.find(({ series }) => series === point.series)
      : points.find(({ series, at }) => series === baseline && at === point.at);
  if (!base || base === point) return undefined;
  const own = samplesOf(samples, point.scenario, point.target);
  return ratios(own, samplesOf(samples, base.scenario, base.target), perRequest);
}

/** Median cost of a request at a point, in microseconds. */
export function costAt({ samples }: ScalingResult, { scenario, target }: ScalingPoint): number {
  return middle(samplesOf(samples, scenario, target), perRequest);
}
