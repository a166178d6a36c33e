// Puts the figures of a run into the page in docs, between its markers.
import { readFileSync, writeFileSync } from "node:fs";
import { plot } from "./plot.ts";
import { renderMarkdown } from "./report.ts";
import type { BenchResult } from "./result.ts";

const page = new URL("../docs/benchmark.md", import.meta.url).pathname;
const drawing = new URL("../docs/benchmark.svg", import.meta.url).pathname;

export const beginMarker = "<!-- figures: written by npm run bench -- --full --docs -->";
export const endMarker = "<!-- end of the figures -->";

export function writeDocs(result: BenchResult): void {
  writeFileSync(page, withFigures(readFileSync(page, "utf8"), renderMarkdown(result)));
  writeFileSync(drawing, plot(result));
}

/** Throws where the page has no markers: nothing else in it is touched. */
export function withFigures(text: string, figures: string): string {
  const begin = text.indexOf(beginMarker);
  const end = text.indexOf(endMarker);
  if (begin < 0 || end < begin) throw new Error(`docs/benchmark.md must have "${beginMarker}" and "${endMarker}".`);
  return `${text.slice(0, begin + beginMarker.length)}\n\n${figures}\n\n${text.slice(end)}`;
}
