// The names of a chart's series, each a switch that shows or hides it.
import { Group, Text, UnstyledButton, useComputedColorScheme } from "@mantine/core";
import { chartColor } from "../../theme.ts";
import type { Series } from "./chart-data.ts";

interface ChartLegendProps {
  title: string;
  series: readonly Series[];
  hidden: ReadonlySet<string>;
  toggle(label: string): void;
}

export function ChartLegend({ title, series, hidden, toggle }: ChartLegendProps) {
  const scheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  return (
    <Group gap={4} mt={4} role="group" aria-label={`${title}: what is shown`}>
      {series.map(({ label, color }, at) => {
        const isShown = !hidden.has(label);
        return (
          <UnstyledButton
            key={label}
            className="chart-switch"
            aria-pressed={isShown}
            onClick={() => toggle(label)}
            title={isShown ? `Hide ${label}` : `Show ${label}`}
          >
            <Swatch scheme={scheme} color={color ?? at} hollow={!isShown} />
            <Text size="xs" component="span" truncate {...(isShown ? {} : { c: "dimmed", td: "line-through" })}>
              {label}
            </Text>
          </UnstyledButton>
        );
      })}
    </Group>
  );
}

export function Swatch({ scheme, color, hollow }: { scheme: "light" | "dark"; color: number; hollow?: boolean }) {
  const shown = chartColor(scheme, color);
  return (
    <span
      className="chart-swatch"
      style={{ borderColor: shown, background: hollow ? "transparent" : shown }}
      aria-hidden="true"
    />
  );
}
