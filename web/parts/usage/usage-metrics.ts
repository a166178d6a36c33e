// The figures of usage charts: how each is drawn and formatted, and its series by group.

import { usdWithout } from "../../api/money.ts";
import { byBucket, type Figures, noFigures, sumOf, type UsageGroup, type UsageRow } from "../../api/usage.ts";
import type { Series } from "../chart/time-chart.tsx";
import { money, percent, perSecond, short } from "../words/figures.ts";

/** The members of a usage row that the figures need. */
type Measured = Pick<Figures, "requests" | "total_tokens" | "cost" | "errors" | "first_token_ms" | "tokens_per_second">;

export interface Metric {
  title: string;
  kind: "line" | "stack";
  whole: boolean;
  /** Computes the figure; null if there is nothing to compute it from. */
  of(figures: Measured): number | null;
  format(value: number): string;
}

const speed = (value: number) => (value === 0 ? "0/s" : `${perSecond(value)}/s`);
/** Formats a duration briefly enough for an axis. */
const wait = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${Number((ms / 1000).toFixed(2))} s`);

export const metrics = {
  requests: { title: "Requests", kind: "stack", whole: true, of: ({ requests }) => requests, format: short },
  tokens: { title: "Tokens", kind: "stack", whole: true, of: (row) => row.total_tokens, format: short },
  cost: { title: "Spend", kind: "stack", whole: false, of: ({ cost }) => cost, format: money },
  errors: {
    ...{ title: "Error rate", kind: "line", whole: false, format: percent },
    of: ({ requests, errors }) => (requests === 0 ? null : errors / requests),
  },
  wait: { title: "Time to first token", kind: "line", whole: false, of: (row) => row.first_token_ms, format: wait },
  speed: { title: "Tokens per second", kind: "line", whole: false, of: (row) => row.tokens_per_second, format: speed },
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof metrics;

/** Maximum number of series, because more would be indistinguishable. */
export const maxSeries = 7;

export function groupOf(row: UsageRow, groupBy: readonly UsageGroup[]): string {
  return groupBy.map((group) => row[group] ?? "").join("\n");
}

/** Groups the rows; the group with the highest `metric` comes first. */
export function groupsOf(rows: readonly UsageRow[], groupBy: readonly UsageGroup[], metric: MetricName = "requests") {
  const groups = new Map<string, UsageRow[]>();
  for (const row of rows) {
    const id = groupOf(row, groupBy);
    const group = groups.get(id);
    if (group) group.push(row);
    else groups.set(id, [row]);
  }
  const { of } = metrics[metric];
  return [...groups]
    .map(([id, ofGroup]) => ({ id, rows: ofGroup, sum: sumOf(ofGroup) }))
    .sort((a, b) => (of(b.sum) ?? -1) - (of(a.sum) ?? -1) || b.sum.requests - a.sum.requests);
}

type Groups = ReturnType<typeof groupsOf>;

/** Returns the values of all groups except these series. */
export function restOf(
  all: readonly (number | null)[],
  series: readonly Series[],
  { whole }: Pick<Metric, "whole">,
): number[] {
  return all.map((value, at) => {
    const parts = series.map(({ values }) => values[at] ?? 0);
    return whole
      ? Math.max(
          0,
          parts.reduce((remaining, part) => remaining - part, value ?? 0),
        )
      : usdWithout(value ?? 0, parts);
  });
}

interface Shown {
  times: readonly number[];
  /** The totals of all groups, by bucket. */
  totals: readonly UsageRow[];
  /** If empty, only the totals are shown. */
  groups: Groups;
  nameOf(id: string): string;
  /** True if groups overlap, as tags do: the remainder of the other groups is then unknown. */
  overlap?: boolean;
}

/** Returns a series for each of the first groups, in their order, and one for the remaining groups if it is known. */
export function seriesOf({ times, totals, groups, nameOf, overlap = false }: Shown, name: MetricName): Series[] {
  const metric: Metric = metrics[name];
  const indexes = new Map(times.map((time, index) => [time, index]));
  const valuesOf = (rows: readonly UsageRow[]) => {
    const values = times.map((): number | null => metric.of(noFigures));
    // A group may have several rows per bucket, one for each environment.
    for (const row of byBucket(rows)) {
      const at = indexes.get(row.start);
      if (at !== undefined) values[at] = metric.of(row);
    }
    return values;
  };
  const all = valuesOf(totals);
  if (groups.length === 0) return [{ label: metric.title, values: all }];
  const first = groups.length === maxSeries + 1 ? groups : groups.slice(0, maxSeries);
  const colors = colorsOf(groups, first);
  const names = new Map<string, number>();
  const series: Series[] = first.map(({ id, rows }, place) => {
    const wanted = nameOf(id);
    const before = names.get(wanted) ?? 0;
    names.set(wanted, before + 1);
    return {
      label: before === 0 ? wanted : `${wanted} (${before + 1})`,
      values: valuesOf(rows),
      color: place < maxSeries ? (colors.get(id) ?? -1) : -1,
    };
  });
  // A group without any measured value, such as the speed of an embedding model, gets no line.
  if (metric.kind === "line") return series.filter(({ values }) => values.some((value) => value !== null));
  if (groups.length > first.length && !overlap) {
    // The total is exact, so the remainder for the other groups is exact too.
    const values = restOf(all, series, metric);
    series.push({ label: `${groups.length - first.length} others`, values, color: -1 });
  }
  return series;
}

/**
 * Gives the shown groups their colors. The groups with the most requests keep their colors whatever figure is shown;
 * the others get the remaining colors.
 */
function colorsOf(groups: Groups, shown: Groups): ReadonlyMap<string, number> {
  const busiest = groups
    .toSorted((a, b) => b.sum.requests - a.sum.requests)
    .slice(0, maxSeries)
    .map(({ id }) => id);
  const isShown = (id: string | undefined) => shown.some((group) => group.id === id);
  const free = [
    ...busiest.keys(),
    ...Array.from({ length: maxSeries - busiest.length }, (_, at) => busiest.length + at),
  ];
  const left = free.filter((color) => !isShown(busiest[color]));
  return new Map(
    shown.map(({ id }) => [id, busiest.includes(id) ? busiest.indexOf(id) : (left.shift() ?? -1)] as const),
  );
}
