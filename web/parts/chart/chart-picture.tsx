// The plot of a chart. Pointer and arrow keys choose a time, whose values are shown and announced.
import { useComputedColorScheme } from "@mantine/core";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type UPlot from "uplot";
import { chartColor, chartDash } from "../../theme.ts";
import { drawn, edges, lonely, offsets, type Plotted } from "./chart-data.ts";
import { ChartReadout, spoken } from "./chart-readout.tsx";
import { axisLabels, dateOf, stepsOf } from "./chart-time.ts";
import { useIsNear, whenItsTurn } from "./chart-turn.ts";

interface PictureProps extends Plotted {
  title: string;
  format(value: number): string;
  /** Axis marks are whole numbers only. */
  whole: boolean;
  height: number;
  width: number;
  /** The Unix seconds up to which an unfinished last bucket has data. */
  until: number | undefined;
  /** The index of the chosen time; undefined if none. */
  index: number | undefined;
  /** True if the user chooses the time in this chart, and not in another chart of the page. */
  isReader: boolean;
  read(index: number | undefined): void;
}

const wholeSteps = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((first) => first * 10 ** power)).flat();

export function ChartPicture(props: PictureProps) {
  const { title, times, bucket, series, kind, hidden, format, whole, height, width, index, isReader, read } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>(undefined);
  const now = useRef(props);
  now.current = props;
  const scheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  const isNear = useIsNear(box);
  const [shown, setShown] = useState<UPlot>();
  const labels = series.map(({ label, color }) => `${label} ${color}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effects below update data and size without a new plot
  useEffect(() => {
    if (!isNear) return;
    const giveUp = whenItsTurn((Plot) => {
      if (!box.current) return;
      plot.current = new Plot(optionsOf(Plot, now, scheme), drawn(now.current), box.current);
      setShown(plot.current);
    });
    return () => {
      giveUp();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [isNear, scheme, kind, labels, bucket, whole]);
  useEffect(() => plot.current?.setSize({ width, height }), [width, height]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `drawn` reads the listed values from `now`
  useEffect(() => plot.current?.setData(drawn(now.current)), [times, series, kind, hidden, bucket]);
  const at = index === undefined ? undefined : offsets({ times, bucket })[index];
  useEffect(() => {
    // A destroyed plot must not be drawn.
    if (!shown || shown !== plot.current || (shown.cursor.idx ?? undefined) === index) return;
    // The cursor moves without an event, because the event would choose the same time again.
    shown.setCursor(at === undefined ? { left: -10, top: -10 } : { left: shown.valToPos(at, "x"), top: 0 }, false);
  }, [shown, index, at]);
  const ratio = globalThis.devicePixelRatio || 1;
  const left =
    at === undefined || !plot.current ? undefined : plot.current.bbox.left / ratio + plot.current.valToPos(at, "x");
  const onKeyDown = (event: KeyboardEvent) => {
    const moved = movedBy(event.key, index, times.length);
    if (moved === undefined) return;
    event.preventDefault();
    read(moved < 0 ? undefined : moved);
  };
  return (
    <div className="chart">
      <div
        ref={box}
        className="chart-picture"
        style={{ height }}
        role="slider"
        tabIndex={0}
        aria-label={`${title}: read the values with the arrow keys`}
        aria-valuemin={1}
        aria-valuemax={Math.max(1, times.length)}
        aria-valuenow={(index ?? times.length - 1) + 1}
        aria-valuetext={index === undefined ? "No value selected" : spoken({ ...props, index, format })}
        onKeyDown={onKeyDown}
        onBlur={() => read(undefined)}
      />
      {isReader && index !== undefined && left !== undefined && (
        <ChartReadout {...props} index={index} left={left} scheme={scheme} />
      )}
    </div>
  );
}

/** Returns the index that a key chooses: -1 clears the choice, and undefined means that the key is not handled. */
function movedBy(key: string, index: number | undefined, length: number): number | undefined {
  const last = length - 1;
  if (last < 0) return undefined;
  const stride = Math.max(2, Math.round(length / 10));
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return index === undefined ? 0 : Math.min(last, index + 1);
    case "ArrowLeft":
    case "ArrowDown":
      return index === undefined ? last : Math.max(0, index - 1);
    case "PageUp":
      return Math.min(last, (index ?? 0) + stride);
    case "PageDown":
      return Math.max(0, (index ?? last) - stride);
    case "Home":
      return 0;
    case "End":
      return last;
    case "Escape":
      return index === undefined ? undefined : -1;
    default:
      return undefined;
  }
}

function optionsOf(
  Plot: typeof UPlot,
  now: { readonly current: PictureProps },
  scheme: "light" | "dark",
): UPlot.Options {
  const { kind, series, bucket, whole, width, height } = now.current;
  const line = scheme === "dark" ? "#3a444d" : "#dfe5ea";
  const text = scheme === "dark" ? "#a4b2be" : "#55636f";
  const font = "12px system-ui, sans-serif";
  const bars = Plot.paths.bars?.({ size: [0.84, 48], radius: 0 });
  const format = (value: number) => now.current.format(value);
  let heard: MouseEvent | undefined;
  return {
    width,
    height,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    tzDate: (seconds) => dateOf(seconds, bucket),
    cursor: { y: false, drag: { x: false, y: false }, points: { show: kind === "line", size: 7 } },
    scales: {
      x: { time: true, range: () => edges(now.current) },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.06 : 1] },
    },
    axes: [
      {
        ...{ stroke: text, font, grid: { show: false }, ticks: { stroke: line, size: 5 }, size: 40, gap: 4, space: 76 },
        incrs: stepsOf(bucket),
        // The label of a mark at the right edge would be cut off, so it is left out.
        values: (plot, splits, _axis, _space, step) =>
          axisLabels(splits, step, bucket).map((label, at) =>
            (splits[at] ?? 0) >= (plot.scales["x"]?.max ?? 0) ? "" : label,
          ),
      },
      {
        ...{ stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, gap: 6, space: 34 },
        ...(whole ? { incrs: wholeSteps } : {}),
        size: (_plot, values) => 14 + Math.max(2, ...(values ?? []).map((value) => value.length)) * 6.6,
        values: (_plot, values) => values.map(format),
      },
    ],
    series: [
      {},
      ...series.map((one, at): UPlot.Series => {
        const color = chartColor(scheme, one.color ?? at);
        if (kind === "line")
          return {
            ...{ label: one.label, stroke: color, width: 2, spanGaps: false, dash: chartDash(one.color ?? at) },
            points: { size: 5, fill: color, filter: (plot, of) => lonely(plot.data[of] ?? []) },
          };
        const paths = bars ? { paths: bars } : {};
        return { label: one.label, fill: color, stroke: color, width: 0, points: { show: false }, ...paths };
      }),
    ],
    hooks: {
      setCursor: [
        ({ cursor: { event, idx } }) => {
          // The hook also runs for each redraw with the last pointer position; such an event must not undo the arrow
          // keys.
          if (!event || event === heard) return;
          heard = event;
          now.current.read(idx ?? undefined);
        },
      ],
    },
  };
}
