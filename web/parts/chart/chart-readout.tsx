// The values of a chart at one time: next to the pointer, and as a sentence for screen readers.
import { Group, Paper, Text } from "@mantine/core";
import type { Plotted } from "./chart-data.ts";
import { Swatch } from "./chart-legend.tsx";
import { nameOfTime } from "./chart-time.ts";

interface Read extends Plotted {
  index: number;
  format(value: number): string;
  until?: number | undefined;
}

interface ChartReadoutProps extends Read {
  /** The position of the time, in pixels from the left edge. */
  left: number;
  width: number;
  scheme: "light" | "dark";
}

export function ChartReadout(props: ChartReadoutProps) {
  const { index, left, width, scheme, format, series, kind } = props;
  const lines = linesOf(props);
  const total = lines.reduce((sum, { value }) => sum + (value ?? 0), 0);
  const side = left > width / 2 ? { right: width - left + 12 } : { left: left + 12 };
  return (
    <Paper withBorder shadow="sm" p={8} className="chart-readout" style={side} aria-hidden="true">
      <Text size="xs" fw={600} mb={2}>
        {headOf(props, index)}
      </Text>
      {lines.map(({ label, value, color }) => (
        <Group key={label} gap={6} wrap="nowrap" justify="space-between">
          <Group gap={6} wrap="nowrap" miw={0}>
            {series.length > 1 && <Swatch scheme={scheme} color={color} />}
            <Text size="xs" truncate>
              {label}
            </Text>
          </Group>
          <Text size="xs" className="numeric">
            {value === null ? "–" : format(value)}
          </Text>
        </Group>
      ))}
      {kind === "stack" && lines.length > 1 && (
        <Group gap={6} wrap="nowrap" justify="space-between" mt={2}>
          <Text size="xs" fw={600}>
            Total
          </Text>
          <Text size="xs" fw={600} className="numeric">
            {format(total)}
          </Text>
        </Group>
      )}
    </Paper>
  );
}

/** Returns the values at one time as a sentence. */
export function spoken(read: Read): string {
  const { index, format, kind } = read;
  const lines = linesOf(read);
  const said = lines.map(({ label, value }) => `${label} ${value === null ? "unknown" : format(value)}`);
  const total = lines.reduce((sum, { value }) => sum + (value ?? 0), 0);
  if (kind === "stack" && lines.length > 1) said.push(`total ${format(total)}`);
  return `${headOf(read, index)}: ${said.length === 0 ? "nothing" : said.join(", ")}`;
}

/** In a stacked chart zero values are left out, unless all are zero. */
function linesOf({ series, hidden, kind, index }: Read) {
  const lines = series
    .map(({ label, values, color }, at) => ({ label, value: values[index] ?? null, color: color ?? at }))
    .filter(({ label }) => !hidden.has(label));
  if (kind === "line" || lines.length < 2) return lines;
  const some = lines.filter(({ value }) => value !== null && value !== 0);
  return some.length > 0 ? some : lines.slice(0, 1);
}

function headOf({ times, bucket, until }: Read, index: number): string {
  const time = times[index] ?? 0;
  const isGrowing = until !== undefined && index === times.length - 1;
  return `${nameOfTime(time, bucket)}${isGrowing ? ", so far" : ""}`;
}
