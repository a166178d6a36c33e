// Builds the series of one overview chart: the top groups, and the rest as one series.
import { credentialName } from "../../api/names.ts";
import type { Overview } from "../../api/types.ts";
import type { Series } from "../../parts/chart/time-chart.tsx";
import { type Metric, type MetricName, maxSeries, metrics, restOf } from "../../parts/usage/usage-metrics.ts";
import type { GroupName } from "./overview-data.ts";

export type ChartGroup = GroupName | "all";

type Usage = Overview["usage"];
type Columns = Usage["total"];

/** Maps each metric to the API's ranking of groups by that metric. */
const rankings: Readonly<Record<MetricName, keyof Usage["ranking"]>> = {
  ...{ requests: "requests", tokens: "total_tokens", cost: "cost", errors: "errors" },
  ...{ wait: "first_token_ms", speed: "tokens_per_second" },
};

export function seriesOf(usage: Usage, names: Overview["names"], by: ChartGroup, name: MetricName): Series[] {
  const metric: Metric = metrics[name];
  const all = valuesOf(usage.total, metric);
  if (by === "all") return [{ label: metric.title, values: all }];
  const ranked = usage.ranking[rankings[name]].flatMap((rank) => {
    const group = usage.groups[rank];
    return group ? [{ place: rank, group }] : [];
  });
  const first = usage.group_count <= maxSeries + 1 ? ranked : ranked.slice(0, maxSeries);
  const labels = labelsOf(first.map(({ group }) => nameOf(group.id, by, names)));
  const series: Series[] = first.map(({ place, group }, at) => ({
    label: labels[at] ?? "",
    values: valuesOf(group, metric),
    // A group has the same color in all charts.
    color: place,
  }));
  const remaining = usage.group_count - first.length;
  if (metric.kind === "line" || remaining <= 0) return series;
  // The total is exact, so the remainder for the other groups is exact too.
  const others = { label: `${remaining} others`, values: restOf(all, series, metric), color: -1 };
  return others.values.some((value) => value > 0) ? [...series, others] : series;
}

function valuesOf(columns: Columns, metric: Metric): (number | null)[] {
  return columns.requests.map((requests, at) =>
    metric.of({
      requests,
      total_tokens: columns.total_tokens[at] ?? 0,
      cost: columns.cost[at] ?? 0,
      errors: columns.errors[at] ?? 0,
      first_token_ms: columns.first_token_ms[at] ?? null,
      tokens_per_second: columns.tokens_per_second[at] ?? null,
    }),
  );
}

/** Adds a number to each name that occurred before, as in "Test (2)". */
function labelsOf(names: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return before === 0 ? name : `${name} (${before + 1})`;
  });
}

function nameOf(id: string | null, by: GroupName, names: Overview["names"]): string {
  if (by === "app" && !id) return "No app";
  if (!id) return by === "model" ? "" : "No upstream";
  return by === "key" || by === "app" ? credentialName(names, id) : (names[id] ?? id);
}
