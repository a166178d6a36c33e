// One bar of parts that together are a whole, in the colours of charts; the words beside it say the same.
import { useComputedColorScheme } from "@mantine/core";
import { chartColor } from "../../theme.ts";
import { Swatch } from "./chart-legend.tsx";

interface StackedBarProps {
  /** What it shows, in words. */
  label: string;
  parts: readonly { name: string; size: number; color: number }[];
  /** What of the whole none of the parts is, of which it tells apart what is taken by others. */
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

/** The colour of one of its parts, beside the name of that. */
export function BarSwatch({ color }: { color: number }) {
  return <Swatch scheme={useColors()} color={color} />;
}

function useColors(): "light" | "dark" {
  return useComputedColorScheme("light", { getInitialValueInEffect: false });
}
