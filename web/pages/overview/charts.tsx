// The charts of the overview: each figure over time, together or by model, key or app.
import { SimpleGrid, Skeleton } from "@mantine/core";
import { replaceEqualDeep } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import type { Overview } from "../../api/types.ts";
import { type ChartBucket, ChartsTogether, TimeChart } from "../../parts/chart/time-chart.tsx";
import { type Metric, type MetricName, metrics } from "../../parts/usage/usage-metrics.ts";
import { type ChartGroup, seriesOf } from "./chart-series.ts";

interface ChartsProps {
  usage: Overview["usage"];
  names: Overview["names"];
  by: ChartGroup;
  bucket: ChartBucket;
}

const metricNames = Object.keys(metrics) as MetricName[];

export function Charts({ usage, names, by, bucket }: ChartsProps) {
  const { start, step } = usage;
  const count = usage.total.requests.length;
  const times = useMemo(() => Array.from({ length: count }, (_, at) => start + at * step), [start, step, count]);
  return (
    <ChartsTogether>
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm">
        {metricNames.map((name) => (
          <UsageChart key={name} {...{ name, usage, names, by, bucket, times }} />
        ))}
      </SimpleGrid>
    </ChartsTogether>
  );
}

function UsageChart({ name, usage, names, by, bucket, times }: ChartsProps & { name: MetricName; times: number[] }) {
  const metric: Metric = metrics[name];
  const { title, kind, format, whole } = metric;
  // The series keep their identity while this chart's figures are equal, so that the chart is not drawn again.
  const kept = useRef<ReturnType<typeof seriesOf>>(undefined);
  const series = replaceEqualDeep(kept.current, seriesOf(usage, names, by, name));
  kept.current = series;
  const all = metric.of(usage.sum);
  return (
    <TimeChart
      {...{ title, times, bucket, kind, format, whole, series }}
      until={usage.start + usage.step * times.length}
      {...(all === null ? {} : { aside: format(all) })}
      empty={emptyTexts[name]}
    />
  );
}

const emptyTexts: Readonly<Record<MetricName, string>> = {
  requests: "No requests in this time.",
  tokens: "No tokens in this time.",
  cost: "No spend. Usage of models without a price is not counted.",
  errors: "No request failed.",
  wait: "No streamed requests in this time. Only streamed requests are measured.",
  speed: "No streamed requests in this time. Only streamed requests are measured.",
};

export function WaitingCharts() {
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm" aria-busy="true">
      {metricNames.map((name) => (
        <Skeleton key={name} height={290} />
      ))}
    </SimpleGrid>
  );
}
