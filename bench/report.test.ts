import { expect, test } from "bun:test";
import { beginMarker, endMarker, withFigures } from "./docs-page.ts";
import { added, coreRatio, perRequest } from "./figures.ts";
import { goals } from "./goals.ts";
import { plot } from "./plot.ts";
import { ticksTo } from "./plot-panels.ts";
import { render, renderMarkdown } from "./report.ts";
import { faults } from "./result.ts";
import { sampleResult } from "./sample-result.ts";

const coreOf = (result = sampleResult()) => {
  if (!result.core) throw new Error("The made-up run has a core.");
  return result.core;
};

test("compares gateways within a round and takes the median ratio", () => {
  expect(coreRatio(coreOf(), "chat-64", "same", perRequest)).toEqual({ median: 1.5, least: 1.5, most: 2 });
  expect(coreRatio(coreOf(), "chat-64", "nginx", perRequest)).toBeUndefined();
});

test("subtracts the mock's latency of the same round from a gateway's", () => {
  const core = coreOf();
  const sample = core.samples.find(({ scenario, target }) => scenario === "chat-1" && target === "same");
  expect(sample && added(core, "p50Ms")(sample)).toBeCloseTo(0.12);
});

test("reports every goal of the run as met or missed", () => {
  const reported = goals(sampleResult()).map(({ title, met }) => [title, met]);
  expect(Object.fromEntries(reported)).toEqual({
    "CPU of a request: same": true,
    "CPU of a streamed chunk: same": false,
    "added p50, 1 connection: same": true,
    "CPU of a request: renamed": false,
    "CPU of a streamed chunk: renamed": false,
    "added p50, 1 connection: renamed": false,
    "Resident memory, idle": true,
    "Resident memory, idle, with the launcher": true,
    "Resident memory, 64 connections at full speed": false,
    "Resident memory a minute after that, to idle": true,
    "Resident memory of a body of 1 MB under way": true,
    "First chunk of 64 streams that begin at once, p50": true,
    "CPU of a request with 2 workers, all processes": true,
    "CPU of a request with 2 workers, beside as many apart": false,
    "CPU of a chunk at full speed with 2 workers, all processes": true,
    "CPU of a chunk at full speed with 2 workers, beside as many apart": false,
    "Workers that one primary process can serve, by its share with 2": true,
    "CPU of a request with 100,000 keys, to that with 10": true,
    "Resident memory with 100,000 keys in use": true,
    "Resident memory of each of 9,000 idle streams": false,
  });
});

test("compares with no nginx goals if nginx did not run", () => {
  const result = sampleResult();
  expect(goals({ ...result, core: { ...coreOf(result), baseline: "direct" } })).toHaveLength(13);
});

test("voids a run with missing usage or a failed request", () => {
  const result = sampleResult();
  expect(faults(result)).toEqual([]);
  const core = coreOf(result);
  core.audit.faults.push("the ledger has 1 requests, the upstream counted 2");
  const [first] = core.samples;
  if (first) first.errors["status 500"] = 3;
  expect(faults(result)).toEqual([
    "chat-1, direct, round 1: status 500 (3 times)",
    "the ledger has 1 requests, the upstream counted 2",
  ]);
});

test("aligns text columns, and gives Markdown rows the same length", () => {
  const lines = render(sampleResult()).split("\n");
  const start = lines.indexOf("Goals");
  const ends = lines.slice(start + 2, start + 8).map((line) => line.search(/ (met|MISSED)$/));
  expect(new Set(ends.map((end, index) => end + (lines[start + 2 + index]?.endsWith(" met") ? -3 : 0))).size).toBe(1);
  for (const table of renderMarkdown(sampleResult()).split("### ").slice(1)) {
    const rows = table.split("\n").filter((line) => line.startsWith("|"));
    expect(new Set(rows.map((row) => row.split("|").length)).size).toBe(1);
  }
});

test("writes one well-formed drawing that no text can break", async () => {
  const svg = plot(sampleResult());
  expect(svg).toContain("Some &lt;CPU&gt;");
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  const open: string[] = [];
  for (const [, closing, name = "", empty] of svg.matchAll(/<(\/?)(\w+)[^>]*?(\/?)>/g)) {
    if (closing) expect(open.pop()).toBe(name);
    else if (!empty) open.push(name);
  }
  expect(open).toEqual([]);
});

test("scales axes from 0 to the value or the next round step", () => {
  expect(ticksTo(24)).toEqual([0, 5, 10, 15, 20, 25]);
  expect(ticksTo(0.3)).toEqual([0, 0.1, 0.2, 0.3]);
  expect(ticksTo(0)).toEqual([0, 1]);
});

test("replaces only the part between the page's markers", () => {
  const page = `# Title\n\n${beginMarker}\n\nold\n\n${endMarker}\n\nafter\n`;
  expect(withFigures(page, "new")).toBe(`# Title\n\n${beginMarker}\n\nnew\n\n${endMarker}\n\nafter\n`);
  expect(() => withFigures("# Title\n", "new")).toThrow("docs/benchmark.md must have");
});
