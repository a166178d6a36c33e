// A bar of parts that add up to a whole, in the charts' colors; the text beside it says the same.
import { useComputedColorScheme } from "@mantine/core";
import { chartColor } from "../../theme.ts";
import { Swatch } from "./chart-legend.tsx";

interface StackedBarProps {
  /** The description for screen readers. */
  label: string;
  parts: readonly { name: string; size: number; color: number }[];
  /** The part of the whole that is used by others. What remains of the whole is left blank. */
  others: number;
  whole: number;
}

export function StackedBar({ label, parts, others, whole }: StackedBarProps) {
  const scheme = useColors();
  const width = (size: number) => ({ width: `${(100 * size) / whole}%` });
  return (
    <div className="stacked-bar" role="img" aria-label={label}>
      {parts.map(({ name, size, color }) => (
        <span key={name} style={{ ...width(size), background: chartColor(scheme, color) }} />
      ))}
      <span className="stacked-bar-others" style={width(others)} />
    </div>
  );
}

/** The color of a part, next to the part's name. */
export function BarSwatch({ color }: { color: number }) {
  return <Swatch scheme={useColors()} color={color} />;
}

function useColors(): "light" | "dark" {
  return useComputedColorScheme("light", { getInitialValueInEffect: false });
}
