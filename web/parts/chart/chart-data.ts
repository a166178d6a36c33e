// Figures of a chart as the library that draws it takes them.
import type UPlot from "uplot";
import { type ChartBucket, endOf } from "./chart-time.ts";

export interface Series {
  label: string;
  /** One for each time; null where nothing is known. */
  values: readonly (number | null)[];
  /** Which of the colours; by its place among the series unless said. -1: grey, for what is left over. */
  color?: number | undefined;
}

export type ChartKind = "line" | "stack";

export interface Plotted {
  /** Unix seconds, rising: of moments, or where each bucket starts. */
  times: readonly number[];
  bucket: ChartBucket | undefined;
  series: readonly Series[];
  kind: ChartKind;
  hidden: ReadonlySet<string>;
}

/** A bucket is drawn in its middle, between the marks of its start and end. */
export function offsets({ times, bucket }: Pick<Plotted, "times" | "bucket">): number[] {
  return bucket === undefined ? [...times] : times.map((time) => (time + endOf(bucket, time)) / 2);
}

/** Stacked: each series is drawn as the sum of those behind it, the tallest first. Hidden ones have no part in it. */
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

/** The span from the first bucket's start to the last one's end. */
export function edges({ times, bucket }: Pick<Plotted, "times" | "bucket">): [number, number] {
  const first = times[0] ?? 0;
  const last = times.at(-1) ?? first;
  return bucket === undefined ? [first, Math.max(last, first + 1)] : [first, endOf(bucket, last)];
}

/** Points that no line leads to or from, and which would not be seen. */
export function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (index: number) => values[index] !== null && values[index] !== undefined;
  const found: number[] = [];
  for (let index = 0; index < values.length; index++) {
    if (isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1)) found.push(index);
  }
  return found;
}
