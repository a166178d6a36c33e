// A chart over time: lines or stacked bars, readable by pointer, arrow keys, or as a table.
import { ActionIcon, Box, Group, Paper, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { GraphIcon, TableIcon } from "@primer/octicons-react";
import { memo, type ReactNode, useId, useState } from "react";
import type { ChartKind, Series } from "./chart-data.ts";
import { ChartLegend } from "./chart-legend.tsx";
import { ChartPicture } from "./chart-picture.tsx";
import { ChartTable } from "./chart-table.tsx";
import { type ChartBucket, isReaderElsewhere, isUtc } from "./chart-time.ts";
import { useReading } from "./chart-together.tsx";

export type { Series } from "./chart-data.ts";
export type { ChartBucket } from "./chart-time.ts";
export { ChartsTogether } from "./chart-together.tsx";

interface TimeChartProps {
  title: string;
  /** The times in Unix seconds, ascending: moments, or the starts of the buckets. */
  times: readonly number[];
  /** The bucket of each value; undefined for moments. Days and months are in UTC. */
  bucket?: ChartBucket | undefined;
  series: readonly Series[];
  kind: "line" | "stack";
  /** Formats a value. */
  format(value: number): string;
  /** If true, the axis has whole numbers only, for counts. */
  whole?: boolean;
  height?: number;
  /** The Unix seconds up to which the last bucket has data; set if the bucket is not complete yet. */
  until?: number | undefined;
  /** Content beside the title, such as the total. */
  aside?: ReactNode;
  /** Content in place of an empty chart. */
  empty?: ReactNode;
}

const none: ReadonlySet<string> = new Set();

/** Memoized: `series` and `times` must keep their identity as long as they are equal. */
export const TimeChart = memo(function TimeChart(props: TimeChartProps) {
  const { title, times, bucket, series, kind, format, whole = false, height = 200, until, aside, empty } = props;
  const [asTable, setAsTable] = useState(false);
  const [hidden, setHidden] = useState(none);
  const { ref, width } = useElementSize();
  const reading = useReading();
  const id = useId();
  const found = reading.time === undefined ? -1 : times.indexOf(reading.time);
  const index = found < 0 ? undefined : found;
  const isEmpty = !series.some(({ values }) => values.some((value) => value !== null && value !== 0));
  const shared = { title, times, bucket, series, format, height };
  const read = (at: number | undefined) => {
    const time = at === undefined ? undefined : times[at];
    reading.read(time);
    reading.setReader(time === undefined ? undefined : id);
  };
  return (
    <Paper withBorder p="md" component="figure" m={0} className="chart-frame">
      <Group justify="space-between" mb="xs" wrap="nowrap" gap="xs">
        <Group component="figcaption" gap="xs" miw={0}>
          <Text fw={600} size="sm" component="span">
            {title}
          </Text>
          {aside && (
            <Text c="dimmed" size="sm" component="span" className="numeric">
              {aside}
            </Text>
          )}
          {isUtc(bucket) && isReaderElsewhere() && (
            <Text c="dimmed" size="xs" component="span">
              by {bucket}, UTC
            </Text>
          )}
        </Group>
        <ActionIcon
          variant="subtle"
          color="gray"
          onClick={() => setAsTable(!asTable)}
          aria-label={asTable ? `${title}: show as chart` : `${title}: show as table`}
          data-hint={asTable ? "Show as chart" : "Show as table"}
        >
          {asTable ? <GraphIcon /> : <TableIcon />}
        </ActionIcon>
      </Group>
      <Box ref={ref} mih={height}>
        {asTable ? (
          <ChartTable {...shared} />
        ) : isEmpty && empty !== undefined ? (
          <Text c="dimmed" size="sm" ta="center" pt={height / 3} component="div">
            {empty}
          </Text>
        ) : (
          width > 0 && (
            <ChartPicture
              {...{ ...shared, kind: kind satisfies ChartKind, hidden, whole, width, until, index, read }}
              isReader={reading.reader === id}
            />
          )
        )}
      </Box>
      {series.length > 1 && !asTable && (
        <ChartLegend {...{ title, series, kind, hidden }} toggle={(label) => setHidden(toggled(hidden, label))} />
      )}
    </Paper>
  );
});

function toggled(hidden: ReadonlySet<string>, label: string): ReadonlySet<string> {
  const next = new Set(hidden);
  if (!next.delete(label)) next.add(label);
  return next;
}
