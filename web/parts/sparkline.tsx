// A row's figures over time as a small picture; the cell says the sum beside it.
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import UPlot from "uplot";
import { chartColor } from "../theme.ts";

interface SparklineProps {
  values: readonly number[];
  width?: number;
  height?: number;
}

/** Only a picture, which screen readers pass over: write beside it what it comes to. */
export function Sparkline({ values, width = 96, height = 24 }: SparklineProps) {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme("light");
  const figures = values.join(" ");
  useEffect(() => {
    const parent = place.current;
    if (!parent) return;
    let made: UPlot | undefined;
    // A row that only rushes by while somebody scrolls is not drawn.
    const waiting = setTimeout(() => {
      made = draw(parent, { figures: figures.split(" ").map(Number), width, height, color: chartColor(scheme, 0) });
    }, 60);
    return () => {
      clearTimeout(waiting);
      made?.destroy();
    };
  }, [figures, width, height, scheme]);
  return <div ref={place} aria-hidden="true" style={{ width, height }} />;
}

interface Drawing {
  figures: number[];
  width: number;
  height: number;
  color: string;
}

function draw(parent: HTMLElement, { figures, width, height, color }: Drawing): UPlot {
  const bars = UPlot.paths.bars?.({ size: [0.7, 12] });
  return new UPlot(
    {
      width,
      height,
      padding: [1, 0, 1, 0],
      legend: { show: false },
      cursor: { show: false },
      axes: [{ show: false }, { show: false }],
      scales: {
        x: { time: false, range: (_plot, min, max) => [min - 0.5, max + 0.5] },
        y: { range: (_plot, _min, max) => [0, max > 0 ? max : 1] },
      },
      series: [{}, { fill: color, stroke: color, width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) }],
    },
    [figures.map((_value, index) => index), figures],
    parent,
  );
}
