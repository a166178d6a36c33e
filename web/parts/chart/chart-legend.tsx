// The legend of a chart; each name shows or hides its series.
import { Group, Text, UnstyledButton, useComputedColorScheme } from "@mantine/core";
import { chartColor, chartDash } from "../../theme.ts";
import type { ChartKind, Series } from "./chart-data.ts";

interface ChartLegendProps {
  title: string;
  series: readonly Series[];
  kind: ChartKind;
  hidden: ReadonlySet<string>;
  toggle(label: string): void;
}

export function ChartLegend({ title, series, kind, hidden, toggle }: ChartLegendProps) {
  const scheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  return (
    <Group gap={4} mt={4} role="group" aria-label={`${title}: series shown`}>
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
            {kind === "line" ? (
              <LineSwatch scheme={scheme} color={color ?? at} />
            ) : (
              <Swatch scheme={scheme} color={color ?? at} hollow={!isShown} />
            )}
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

/** A sample of the series' line, with its dashes. */
function LineSwatch({ scheme, color }: { scheme: "light" | "dark"; color: number }) {
  return (
    <svg className="chart-line-swatch" width="24" height="10" aria-hidden="true">
      <line
        {...{ x1: 0, x2: 24, y1: 5, y2: 5, strokeWidth: 2.5 }}
        stroke={chartColor(scheme, color)}
        strokeDasharray={chartDash(color).join(" ")}
      />
    </svg>
  );
}
