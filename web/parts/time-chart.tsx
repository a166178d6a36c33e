// Figures over time: lines or stacked bars, read by pointer, and as a table by who prefers one or cannot see the picture.
import {
  ActionIcon,
  Box,
  ColorSwatch,
  Group,
  Paper,
  Table,
  Text,
  Tooltip,
  useComputedColorScheme,
} from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { GraphIcon, TableIcon } from "@primer/octicons-react";
import { useEffect, useRef, useState } from "react";
import UPlot from "uplot";
import { seriesColors } from "../theme.ts";
import { at } from "./figures.ts";

export interface Series {
  label: string;
  /** One for each time; null where nothing is known. */
  values: readonly (number | null)[];
}

interface TimeChartProps {
  title: string;
  /** Unix seconds, rising. */
  times: readonly number[];
  series: readonly Series[];
  kind: "line" | "stack";
  /** How a value is written. */
  format(value: number): string;
  height?: number;
}

export function TimeChart({ title, times, series, kind, format, height = 200 }: TimeChartProps) {
  const [asTable, setAsTable] = useState(false);
  const [shown, setShown] = useState<number>();
  const { ref, width } = useElementSize();
  const index = shown === undefined || shown >= times.length ? undefined : shown;
  return (
    <Paper withBorder p="md" component="figure" m={0}>
      <Group justify="space-between" mb="xs" wrap="nowrap">
        <Text component="figcaption" fw={600} size="sm">
          {title}
        </Text>
        <Tooltip label={asTable ? "Show as picture" : "Show as table"}>
          <ActionIcon
            variant="subtle"
            color="gray"
            onClick={() => setAsTable(!asTable)}
            aria-label={asTable ? `${title}: show as picture` : `${title}: show as table`}
          >
            {asTable ? <GraphIcon /> : <TableIcon />}
          </ActionIcon>
        </Tooltip>
      </Group>
      <Box ref={ref} mih={height}>
        {asTable ? (
          <FigureTable {...{ title, times, series, format, height }} />
        ) : (
          width > 0 && <Picture {...{ title, times, series, kind, format, height, width, setShown }} />
        )}
      </Box>
      <Group gap="md" mt="xs" mih={22} aria-hidden={asTable}>
        <Text size="xs" c="dimmed">
          {index === undefined ? "" : at(times[index] ?? 0)}
        </Text>
        {series.map(({ label, values }, at) => {
          const value = index === undefined ? null : values[index];
          return (
            <Group gap={6} key={label} wrap="nowrap">
              <ColorSwatch size={10} color={seriesColors[at % seriesColors.length] ?? ""} withShadow={false} />
              <Text size="xs" className="numeric">
                {label}
                {value === null || value === undefined ? "" : ` ${format(value)}`}
              </Text>
            </Group>
          );
        })}
      </Group>
    </Paper>
  );
}

interface PictureProps extends Required<TimeChartProps> {
  width: number;
  setShown(index: number | undefined): void;
}

function Picture({ title, times, series, kind, format, height, width, setShown }: PictureProps) {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme("light");
  const plot = useRef<UPlot>(undefined);
  const labels = series.map(({ label }) => label).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the figures themselves are set below, without a new picture
  useEffect(() => {
    if (!place.current) return;
    const line = scheme === "dark" ? "#3a444d" : "#dfe5ea";
    const text = scheme === "dark" ? "#a4b2be" : "#55636f";
    const bars = UPlot.paths.bars?.({ size: [0.8, 40] });
    const made = new UPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { y: false, points: { show: kind === "line" } },
        scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] } },
        axes: [
          { stroke: text, grid: { show: false }, ticks: { stroke: line }, size: 32 },
          {
            stroke: text,
            grid: { stroke: line, width: 1 },
            ticks: { show: false },
            size: 64,
            values: (_plot, values) => values.map((value) => format(value)),
          },
        ],
        series: [
          {},
          ...series.map(({ label }, at) => {
            const color = seriesColors[at % seriesColors.length] ?? "";
            return kind === "stack"
              ? {
                  label,
                  fill: color,
                  stroke: color,
                  width: 0,
                  points: { show: false },
                  ...(bars ? { paths: bars } : {}),
                }
              : { label, stroke: color, width: 2, spanGaps: false };
          }),
        ],
        hooks: { setCursor: [({ cursor }) => setShown(cursor.idx ?? undefined)] },
      },
      dataOf(times, series, kind),
      place.current,
    );
    plot.current = made;
    return () => {
      plot.current = undefined;
      made.destroy();
    };
  }, [scheme, kind, labels]);
  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);
  useEffect(() => plot.current?.setData(dataOf(times, series, kind)), [times, series, kind]);
  return <div ref={place} role="img" aria-label={`${title}, as a picture; the button beside it shows the figures`} />;
}

/** Stacked: each series is drawn as the sum of those behind it, the tallest first. */
function dataOf(times: readonly number[], series: readonly Series[], kind: "line" | "stack"): UPlot.AlignedData {
  if (kind === "line") return [[...times], ...series.map(({ values }) => [...values])];
  const sums: number[][] = series.map(() => []);
  for (const index of times.keys()) {
    let sum = 0;
    for (let at = series.length - 1; at >= 0; at--) {
      sum += series[at]?.values[index] ?? 0;
      sums[at]?.push(sum);
    }
  }
  return [[...times], ...sums];
}

function FigureTable({ title, times, series, format, height }: Omit<Required<TimeChartProps>, "kind">) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard (WCAG 2.1.1)
    <section style={{ maxHeight: height, overflow: "auto" }} tabIndex={0} aria-label={`${title}, figures`}>
      <Table stickyHeader verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Time</Table.Th>
            {series.map(({ label }) => (
              <Table.Th key={label} ta="right">
                {label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {times.map((time, index) => (
            <Table.Tr key={time}>
              <Table.Td>{at(time)}</Table.Td>
              {series.map(({ label, values }) => {
                const value = values[index];
                return (
                  <Table.Td key={label} ta="right" className="numeric">
                    {value === null || value === undefined ? "–" : format(value)}
                  </Table.Td>
                );
              })}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}
