// A row's figures over time as a small chart, beside the cell's sum.

interface SparklineProps {
  values: readonly number[];
  width?: number;
  height?: number;
}

/** Draws a chart that is hidden from screen readers, so the caller must write the total beside it. */
export function Sparkline({ values, width = 96, height = 24 }: SparklineProps) {
  const most = Math.max(...values, 1e-9);
  const step = width / Math.max(1, values.length);
  const bars = values.map((value, at) => {
    const tall = (value / most) * (height - 2);
    return tall > 0
      ? `M${(at * step + step * 0.15).toFixed(1)} ${height}v${(-tall).toFixed(1)}h${(step * 0.7).toFixed(1)}V${height}z`
      : "";
  });
  return (
    <svg className="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      <path d={bars.join("")} />
    </svg>
  );
}
