// Converts a chart's series into the data format of uPlot.
import type UPlot from "uplot";
import { type ChartBucket, endOf } from "./chart-time.ts";

export interface Series {
  label: string;
  /** One value per time; null means unknown. */
  values: readonly (number | null)[];
  /** The index of the color, by default the series' position. -1 is grey, for the remaining groups. */
  color?: number | undefined;
}

export type ChartKind = "line" | "stack";

export interface Plotted {
  /** The times in Unix seconds, ascending: moments, or the starts of the buckets. */
  times: readonly number[];
  bucket: ChartBucket | undefined;
  series: readonly Series[];
  kind: ChartKind;
  hidden: ReadonlySet<string>;
}

/** Returns the positions of the points: a bucket is drawn in the middle of its time. */
export function offsets({ times, bucket }: Pick<Plotted, "times" | "bucket">): number[] {
  return bucket === undefined ? [...times] : times.map((time) => (time + endOf(bucket, time)) / 2);
}

/**
 * Returns the data that uPlot draws. In a stacked chart each series is drawn as the sum of itself and all series after
 * it, so the tallest comes first. Hidden series are left out.
 */
export function drawn(plotted: Plotted): UPlot.AlignedData {
  const { times, series, kind, hidden } = plotted;
  const nothing = times.map(() => null);
  const isShown = ({ label }: Series) => !hidden.has(label);
  if (kind === "line") return [offsets(plotted), ...series.map((one) => (isShown(one) ? [...one.values] : nothing))];
  const sums = times.map(() => 0);
  const stacked = series.toReversed().map((one) => {
    if (!isShown(one)) return nothing;
    return one.values.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + (value ?? 0);
      return sums[index] ?? 0;
    });
  });
  return [offsets(plotted), ...stacked.reverse()];
}

/** Returns the start of the first bucket and the end of the last. */
export function edges({ times, bucket }: Pick<Plotted, "times" | "bucket">): [number, number] {
  const first = times[0] ?? 0;
  const last = times.at(-1) ?? first;
  return bucket === undefined ? [first, Math.max(last, first + 1)] : [first, endOf(bucket, last)];
}

/** Returns the points without neighbors, which need a dot because no line shows them. */
export function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (index: number) => values[index] !== null && values[index] !== undefined;
  const found: number[] = [];
  for (let index = 0; index < values.length; index++) {
    if (isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1)) found.push(index);
  }
  return found;
}
