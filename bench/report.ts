// Turns samples into what a person reads: medians of the rounds, ratios to the baseline, and how far they spread.
import type { EngineFigure } from "./built-in-engine.ts";
import { type Sample, type Scenario, scenarios } from "./measure.ts";
import type { BenchOptions } from "./options.ts";
import { median, type Spread, spread } from "./statistics.ts";

export interface BenchResult {
  machine: {
    cpu: string;
    cores: number;
    kernel: string;
    bun: string;
    nginx: string | null;
    /** Load average over a minute. */
    loadBefore: number;
    loadAfter: number;
  };
  options: BenchOptions;
  targets: readonly { name: string; title: string }[];
  /** The target to which the others are compared. */
  baseline: string;
  samples: readonly Sample[];
  /** Bytes. */
  rss: { headraceIdle: number; headraceLoaded: number; nginxLoaded: number | null };
  startMs: readonly number[];
  engine: readonly EngineFigure[];
}

export function render(result: BenchResult): string {
  const { machine, baseline, options } = result;
  const lines = [
    "",
    `${machine.cores} x ${machine.cpu}, Linux ${machine.kernel}, Bun ${machine.bun}, ${machine.nginx ?? "no nginx"}; ` +
      `load average ${machine.loadBefore.toFixed(1)} before, ${machine.loadAfter.toFixed(1)} after.`,
    `Medians of ${options.rounds} interleaved rounds; ratios to ${titleOf(result, baseline)} within a round, [least to most].`,
  ];
  if (machine.nginx === null) {
    lines.push(
      "nginx is not installed (Debian: apt-get install nginx): compared with the mock upstream alone, which is no gateway.",
    );
  }
  for (const scenario of scenarios) lines.push("", ...scenarioTable(result, scenario));
  lines.push("", ...processTable(result), "", ...engineTable(result), "");
  return lines.join("\n");
}

/** Errors of any measurement: with one of them the figures are void. */
export function faults({ samples, engine }: BenchResult): string[] {
  const inSamples = samples.flatMap((sample) =>
    Object.entries(sample.errors).map(
      ([error, count]) => `${sample.scenario}, ${sample.target}, round ${sample.round}: ${error} (${count} times)`,
    ),
  );
  const inEngine = engine.flatMap((figure) =>
    Object.entries(figure.errors).map(([error, count]) => `engine, ${figure.chats} chats: ${error} (${count} times)`),
  );
  return [...inSamples, ...inEngine];
}

function scenarioTable(result: BenchResult, scenario: Scenario): string[] {
  return align(scenario.unit === "event" ? streamRows(result, scenario) : chatRows(result, scenario));
}

function chatRows(result: BenchResult, scenario: Scenario): string[][] {
  const head = ["CPU us/request", "ratio", "", "requests/s", "p50 ms", "p99 ms", "added p50 ms", "ratio", ""];
  const direct = samplesOf(result, scenario.name, "direct");
  const base = samplesOf(result, scenario.name, result.baseline);
  const cost = (sample: Sample) => sample.cpuMicros / sample.requests;
  const added = (sample: Sample) => sample.p50Ms - (ofRound(direct, sample)?.p50Ms ?? Number.NaN);
  const rows = result.targets.map(({ name, title }) => {
    const own = samplesOf(result, scenario.name, name);
    return [
      `  ${title}`,
      fixed(median(own.map(cost))),
      ...ratio(result, name, ratios(own, base, cost)),
      fixed(median(own.map((sample) => sample.requests / sample.seconds)), 0),
      fixed(median(own.map((sample) => sample.p50Ms)), 3),
      fixed(median(own.map((sample) => sample.p99Ms)), 3),
      ...(name === "direct"
        ? []
        : [fixed(median(own.map(added)), 3), ...ratio(result, name, ratios(own, base, added))]),
    ];
  });
  return [[scenario.title, ...head], ...rows];
}

function streamRows(result: BenchResult, scenario: Scenario): string[][] {
  const base = samplesOf(result, scenario.name, result.baseline);
  const cost = (sample: Sample) => sample.cpuMicros / sample.events;
  const rows = result.targets.map(({ name, title }) => {
    const own = samplesOf(result, scenario.name, name);
    return [
      `  ${title}`,
      fixed(median(own.map(cost)), 2),
      ...ratio(result, name, ratios(own, base, cost)),
      fixed(median(own.map((sample) => sample.events / sample.seconds)), 0),
      fixed(median(own.map((sample) => sample.firstEventP50Ms ?? Number.NaN)), 3),
    ];
  });
  return [[scenario.title, "CPU us/chunk", "ratio", "", "chunks/s", "first chunk p50 ms"], ...rows];
}

function processTable({ rss, startMs }: BenchResult): string[] {
  const start = spread(startMs);
  const megabytes = (bytes: number) => `${fixed(bytes / 1e6)} MB`;
  const rows = [
    ["Process (built-in engine off)"],
    ["  Headrace, resident, idle", megabytes(rss.headraceIdle)],
    ["  Headrace, resident, after the load", megabytes(rss.headraceLoaded)],
    ...(rss.nginxLoaded === null ? [] : [["  nginx, resident, after the load", megabytes(rss.nginxLoaded)]]),
    [
      "  Headrace, start to first /healthz",
      `${fixed(start.median, 0)} ms`,
      `[${fixed(start.least, 0)} to ${fixed(start.most, 0)}]`,
    ],
  ];
  return align(rows);
}

function engineTable({ engine }: BenchResult): string[] {
  return align([
    ["Built-in engine, demo model, streamed chats", "tokens/s", "tokens/s a chat", "first event p50 ms"],
    ...engine.map(({ chats, tokensPerSecond, firstEventP50Ms }) => [
      `  ${chats} at once`,
      fixed(tokensPerSecond, 0),
      fixed(tokensPerSecond / chats, 0),
      fixed(firstEventP50Ms ?? Number.NaN),
    ]),
  ]);
}

function samplesOf({ samples }: BenchResult, scenario: string, target: string): Sample[] {
  return samples.filter((sample) => sample.scenario === scenario && sample.target === target);
}

/** Round by round: what disturbed a round disturbed both. */
function ratios(own: readonly Sample[], base: readonly Sample[], figure: (sample: Sample) => number): Spread {
  return spread(
    own.map((sample) => {
      const other = ofRound(base, sample);
      return other ? figure(sample) / figure(other) : Number.NaN;
    }),
  );
}

function ofRound(samples: readonly Sample[], { round }: Sample): Sample | undefined {
  return samples.find((sample) => sample.round === round);
}

/** Two cells; empty where the target is the baseline itself, or the mock, which is no gateway. */
function ratio({ baseline }: BenchResult, target: string, { median: middle, least, most }: Spread): string[] {
  if (target === baseline || target === "direct" || !Number.isFinite(middle)) return ["", ""];
  return [`${fixed(middle, 2)}x`, `[${fixed(least, 2)} to ${fixed(most, 2)}]`];
}

function titleOf({ targets }: BenchResult, name: string): string {
  return targets.find((target) => target.name === name)?.title ?? name;
}

function fixed(value: number, digits = 1): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "-";
}

/** Columns of equal width, the first to the left and the others to the right. */
function align(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}
