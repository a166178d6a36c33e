// The two kinds of panel of a drawing: bars with their range, and lines.
import type { Spread } from "./statistics.ts";

export const panelWidth = 420;
export const panelHeight = 220;

export interface Bar {
  title: string;
  value: Spread;
  /** Number of its class in the style sheet. */
  colour: number;
}

export interface Line {
  title: string;
  points: readonly { x: number; y: number }[];
  colour: number;
}

const top = 30;
const bottom = 38;
const plotBottom = panelHeight - bottom;
const labelWidth = 146;
const valueWidth = 52;
const yAxisWidth = 52;
const wantedTicks = 5;
/** Room for the figures that stand above the points. */
const headroom = 1.1;

export function text(kind: string, x: number, y: number, content: string, anchor = "start"): string {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped}</text>`;
}

/** Bars from the left, each with its median, and a whisker from the least to the most. */
export function barPanel(title: string, unit: string, bars: readonly Bar[]): string {
  const right = panelWidth - valueWidth;
  const ticks = ticksTo(Math.max(...bars.map(({ value }) => value.most), 0));
  const scale = (value: number) => labelWidth + (value / (ticks.at(-1) ?? 1)) * (right - labelWidth);
  const step = (plotBottom - top) / Math.max(bars.length, 1);
  const thickness = Math.min(26, step * 0.66);
  const parts = [text("panel", 0, 14, title)];
  for (const tick of ticks) {
    parts.push(rule("grid", scale(tick), top, scale(tick), plotBottom));
    parts.push(text("tick", scale(tick), plotBottom + 15, tickText(tick), "middle"));
  }
  bars.forEach(({ title: name, value, colour }, index) => {
    const middle = top + step * (index + 0.5);
    const width = Math.max(scale(value.median) - labelWidth, 1);
    parts.push(text("label", labelWidth - 8, middle + 4, name, "end"));
    parts.push(
      `<rect class="c${colour}" x="${labelWidth}" y="${round(middle - thickness / 2)}" width="${round(width)}" height="${round(thickness)}"/>`,
    );
    if (value.most > value.least) parts.push(rule("range", scale(value.least), middle, scale(value.most), middle));
    parts.push(
      text("label", Math.max(scale(value.most), scale(value.median), labelWidth) + 6, middle + 4, figure(value.median)),
    );
  });
  parts.push(rule("axis", labelWidth, top, labelWidth, plotBottom));
  parts.push(text("note", (labelWidth + right) / 2, panelHeight - 6, unit, "middle"));
  return parts.join("\n");
}

/** Lines over a logarithmic axis, on which 0 stands left of the first; upwards logarithmic as well where `steep`. */
export function linePanel(
  { title, axis, unit }: { title: string; axis: string; unit: string },
  lines: readonly Line[],
  placeText: (x: number) => string,
  steep: boolean,
): string {
  const right = panelWidth - 24;
  const left = yAxisWidth + 16;
  const points = lines.flatMap((line) => line.points).filter(({ y }) => Number.isFinite(y));
  const places = [...new Set(points.map(({ x }) => x))].toSorted((a, b) => a - b);
  const x = logScale(places, left, right);
  const heights = points.map(({ y }) => y);
  const ticks = steep ? decades(heights) : ticksTo(Math.max(...heights, 0) * headroom);
  const y = heightScale(ticks, steep);
  const parts = [text("panel", 0, 14, title), text("note", 0, top, unit)];
  for (const tick of ticks) {
    parts.push(
      rule("grid", yAxisWidth, y(tick), right, y(tick)),
      text("tick", yAxisWidth - 6, y(tick) + 4, tickText(tick), "end"),
    );
  }
  for (const place of places) parts.push(text("tick", x(place), plotBottom + 15, placeText(place), "middle"));
  lines.forEach((line, index) => {
    const drawn = line.points.filter((point) => Number.isFinite(point.y));
    const path = drawn.map((point) => `${round(x(point.x))},${round(y(point.y))}`).join(" ");
    parts.push(`<polyline class="c${line.colour} line" points="${path}"/>`);
    for (const point of drawn) {
      parts.push(`<circle class="c${line.colour}" cx="${round(x(point.x))}" cy="${round(y(point.y))}" r="3"/>`);
    }
    if (lines.length === 1) {
      for (const point of drawn) parts.push(text("tick", x(point.x), y(point.y) - 8, figure(point.y), "middle"));
    } else {
      const place = yAxisWidth + 14;
      const height = top + 18 + index * 16;
      parts.push(`<rect class="c${line.colour}" x="${place}" y="${height - 9}" width="10" height="10"/>`);
      parts.push(text("label", place + 16, height, line.title));
    }
  });
  parts.push(
    rule("axis", yAxisWidth, top + 4, yAxisWidth, plotBottom),
    rule("axis", yAxisWidth, plotBottom, right, plotBottom),
  );
  parts.push(text("note", (yAxisWidth + right) / 2, panelHeight - 6, axis, "middle"));
  return parts.join("\n");
}

/** Ticks from 0 to at least `most`, in steps of 1, 2 or 5 times a power of ten. */
export function ticksTo(most: number): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / wantedTicks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** Powers of ten that enclose the values. */
function decades(values: readonly number[]): number[] {
  const from = Math.floor(Math.log10(Math.min(...values)));
  const to = Math.max(Math.ceil(Math.log10(Math.max(...values))), from + 1);
  return Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index));
}

function logScale(places: readonly number[], left: number, right: number): (value: number) => number {
  const least = places.find((place) => place > 0) ?? 1;
  const log = (value: number) => Math.log10(value > 0 ? value : least / 10);
  const from = log(places[0] ?? 1);
  const span = log(places.at(-1) ?? 1) - from || 1;
  return (value) => left + ((log(value) - from) / span) * (right - left);
}

function heightScale(ticks: readonly number[], steep: boolean): (value: number) => number {
  const of = steep ? Math.log10 : (value: number) => value;
  const from = of(ticks[0] ?? 0);
  const span = of(ticks.at(-1) ?? 1) - from;
  return (value) => plotBottom - ((of(value) - from) / span) * (plotBottom - top - 10);
}

function rule(kind: string, x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="${kind}" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"/>`;
}

/** Three significant digits. */
function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

function tickText(value: number): string {
  return value >= 1_000 ? value.toLocaleString("en") : String(Number(value.toPrecision(6)));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
