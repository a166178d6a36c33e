// Medians, percentiles and spreads of measured figures.

/** Smallest, middle and largest of several rounds. */
export interface Spread {
  median: number;
  least: number;
  most: number;
}

/** The middle value; the mean of the two middle ones of an even number. NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/** Nearest-rank percentile of ascending `sorted`, `share` from 0 to 1; NaN of none. */
export function percentile(sorted: readonly number[] | Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
