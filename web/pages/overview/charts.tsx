// The charts of the overview: each figure over time, together or by model, key or app.
import { SimpleGrid, Skeleton } from "@mantine/core";
import { useMemo } from "react";
import type { UsageGroup, UsageRow } from "../../api/usage.ts";
import { ChartsTogether, TimeChart } from "../../parts/time-chart.tsx";
import { groupsOf, type Metric, type MetricName, metrics, seriesOf } from "../../parts/usage-metrics.ts";
import type { Overview } from "./overview-data.ts";

interface ChartsProps {
  overview: Overview;
  by: UsageGroup | undefined;
  /** By bucket and group; undefined while they are on their way. */
  rows: readonly UsageRow[] | undefined;
  nameOf(id: string): string;
}

const names = Object.keys(metrics) as MetricName[];

export function Charts({ overview, by, rows, nameOf }: ChartsProps) {
  const { times, totals, bucket, now, sum } = overview;
  const groups = useMemo(() => (by && rows ? groupsOf(rows, [by]) : []), [by, rows]);
  if (by && !rows) return <WaitingCharts />;
  return (
    <ChartsTogether>
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm">
        {names.map((name) => {
          const metric: Metric = metrics[name];
          const { title, kind, format, whole } = metric;
          const all = metric.of(sum);
          return (
            <TimeChart
              key={name}
              {...{ title, times, bucket, kind, format, whole }}
              series={seriesOf({ times, totals, groups, nameOf }, name)}
              until={now}
              {...(all === null ? {} : { aside: format(all) })}
              empty={emptyTexts[name]}
            />
          );
        })}
      </SimpleGrid>
    </ChartsTogether>
  );
}

const emptyTexts: Readonly<Record<MetricName, string>> = {
  requests: "No requests in this time.",
  tokens: "No tokens in this time.",
  cost: "Nothing was spent: models without a price cost nothing.",
  errors: "No request failed.",
  wait: "Nothing was streamed in this time, which is what this is measured of.",
  speed: "Nothing was streamed in this time, which is what this is measured of.",
};

export function WaitingCharts() {
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm" aria-busy="true">
      {names.map((name) => (
        <Skeleton key={name} height={290} />
      ))}
    </SimpleGrid>
  );
}
