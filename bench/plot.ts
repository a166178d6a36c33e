// Draws a run as one SVG: a panel for each question it answers.
import type { CoreResult } from "./core.ts";
import { added, costAt, perChunk, perRequest, samplesOf } from "./figures.ts";
import type { Sample } from "./measure.ts";
import { type Bar, barPanel, type Line, linePanel, panelHeight, panelWidth, text } from "./plot-panels.ts";
import type { BenchResult } from "./result.ts";
import type { ScalingResult } from "./scaling.ts";
import { chatMany, chatOne, type Scenario, streamPaced } from "./scenarios.ts";
import { spread } from "./statistics.ts";
import { bytesText, whole } from "./tables.ts";

const margin = 20;
const gap = 28;
const titleHeight = 46;
const columns = 2;

/** Panels without figures are left out. It brings its own background, light or dark as the reader has it. */
export function plot(result: BenchResult): string {
  const panels = [...(result.core ? corePanels(result.core) : []), ...result.scaling.map(scalingPanel)];
  if (result.streams) panels.push(streamsPanel(result.streams));
  if (result.engine) panels.push(enginePanel(result.engine));
  const width = 2 * margin + columns * panelWidth + (columns - 1) * gap;
  const rows = Math.ceil(panels.length / columns);
  const height = titleHeight + margin + rows * (panelHeight + gap);
  const placed = panels.map((panel, index) => {
    const x = margin + (index % columns) * (panelWidth + gap);
    const y = titleHeight + margin + Math.floor(index / columns) * (panelHeight + gap);
    return `<g transform="translate(${x} ${y})">\n${panel}\n</g>`;
  });
  const { machine, rounds, at } = result;
  const subtitle = `${machine.cores} x ${machine.cpu}, ${machine.nginx ?? "no nginx"}, Bun ${machine.bun}; medians of ${rounds} rounds, whiskers least to most; ${at.slice(0, 10)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Benchmark of Headrace beside nginx">
<style>${style}</style>
<rect class="back" width="${width}" height="${height}"/>
${text("title", margin, 28, "Headrace beside nginx, in front of the same mock upstream")}
${text("note", margin, 48, subtitle)}
${placed.join("\n")}
</svg>
`;
}

const style = `
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-size: 17px; font-weight: 600; } .panel { font-size: 13px; font-weight: 600; }
.note, .tick { font-size: 11px; fill: #57606a; } .back { fill: #ffffff; }
.grid { stroke: #d8dee4; } .axis { stroke: #57606a; } .range { stroke: #24292f; stroke-width: 1.5; }
.c0 { fill: #8c959f; stroke: #8c959f; } .c1 { fill: #0969da; stroke: #0969da; } .c2 { fill: #8250df; stroke: #8250df; }
.c3 { fill: #bc4c00; stroke: #bc4c00; } .line { fill: none; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .note, .tick { fill: #9198a1; } .back { fill: #0d1117; }
.grid { stroke: #2d333b; } .axis { stroke: #9198a1; } .range { stroke: #e6edf3; }
.c0 { fill: #7d8590; stroke: #7d8590; } .c1 { fill: #58a6ff; stroke: #58a6ff; } .c2 { fill: #bc8cff; stroke: #bc8cff; }
.c3 { fill: #f0883e; stroke: #f0883e; } .line { fill: none; }
}
`;

/** nginx is grey, Headrace blue and violet, others orange. */
function colourOf(name: string): number {
  if (name === "nginx") return 0;
  if (name === "renamed" || name.includes("renamed")) return 2;
  return name === "same" || name.startsWith("Headrace") ? 1 : 3;
}

function corePanels(core: CoreResult): string[] {
  const bars = (scenario: Scenario, figure: (sample: Sample) => number) =>
    core.targets
      .filter(({ name }) => name !== "direct")
      .map(({ name, title }): Bar => {
        const value = spread(samplesOf(core.samples, scenario.name, name).map(figure));
        return { title, value, colour: colourOf(name) };
      })
      .filter(({ value }) => Number.isFinite(value.median));
  const addedMicros = added(core, "p50Ms");
  return [
    barPanel("Processor time of a request, 64 connections", "microseconds of CPU", bars(chatMany, perRequest)),
    barPanel("Processor time of a streamed chunk, 64 streams", "microseconds of CPU", bars(streamPaced, perChunk)),
    barPanel(
      "Median latency added to the upstream's, 1 connection",
      "microseconds",
      bars(chatOne, (sample) => addedMicros(sample) * 1000),
    ),
    barPanel(
      "Resident memory after the load",
      "MB",
      core.rss.map(({ title, afterLoad }) => ({
        title,
        value: spread([afterLoad / 1e6]),
        colour: colourOf(title),
      })),
    ),
  ];
}

const questions = {
  keys: "number of keys",
  models: "number of models",
  bodies: "size of its body",
  ledger: "requests in the ledger",
  tools: "tools at the server",
} as const;

function scalingPanel(section: ScalingResult): string {
  const series = [...new Set(section.points.map((point) => point.series))];
  const lines = series.map((title): Line => {
    const points = section.points.filter((point) => point.series === title);
    return {
      title,
      colour: colourOf(title),
      points: points.map((point) => ({ x: point.at, y: costAt(section, point) })),
    };
  });
  return linePanel(
    {
      title: `Processor time of a request by ${questions[section.name]}`,
      axis: section.axis,
      unit: "microseconds of CPU",
    },
    lines,
    section.name === "bodies" ? bytesText : whole,
    section.name === "bodies",
  );
}

function streamsPanel({ points }: NonNullable<BenchResult["streams"]>): string {
  const bars = points
    .filter(({ open }) => open > 1)
    .map(({ title, open, bytesPerStream }): Bar => {
      return { title: `${title}, ${whole(open)}`, value: spread([bytesPerStream / 1e3]), colour: colourOf(title) };
    });
  return barPanel("Resident memory of an open, silent stream", "KB a stream", bars);
}

function enginePanel(engine: NonNullable<BenchResult["engine"]>): string {
  const bars = engine.flatMap(({ chats, tokensPerSecond }): Bar[] => [
    { title: `${chats} at once, directly`, value: tokensPerSecond.direct, colour: 0 },
    { title: `${chats} at once, Headrace`, value: tokensPerSecond.gateway, colour: 1 },
  ]);
  return barPanel("Built-in engine, demo model", "tokens a second", bars);
}
