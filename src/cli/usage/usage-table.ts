// Shows usage to a person: a table, with bars beside it if they fit.

import { z } from "zod";
import { nanoOfUsd, usdOf } from "../../base/money.ts";
import type { TimeCounts } from "../../domain/usage/time-counts.ts";
import type { UsageGroup } from "../../domain/usage/usage.ts";
import { formatCount, formatUsd, usdDigits } from "../terminal/figures.ts";
import { formatTable, type Terminal, withoutColumns } from "../terminal/terminal.ts";
import { percentilesText, rowTimes, timesOfRows, timesSentence } from "./percentiles.ts";

const group = z.string().nullish();

export const usageRow = z.object({
  start: z.number(),
  end: z.number(),
  model: group,
  key: group,
  environment: group,
  app: group,
  tag: group,
  account: group,
  organization: group,
  person: group,
  upstream: group,
  deployment: group,
  outcome: group,
  requests: z.number(),
  prompt_tokens: z.number(),
  cached_tokens: z.number().nullish(),
  completion_tokens: z.number(),
  total_tokens: z.number(),
  cost: z.number().nullish(),
  errors: z.number(),
  percentiles: rowTimes,
});

export type UsageRow = z.infer<typeof usageRow>;

export interface UsageTableOptions {
  /** The time span of a row. Undefined if each row is for the whole time. */
  bucket: string | undefined;
  groups: readonly UsageGroup[];
  /** The rows to compute the total from, if the sum of the shown rows is not the total. */
  whole?: readonly UsageRow[] | undefined;
  /** Reports whether a model has no price. Called only for rows without a cost. */
  isUnpriced?: ((model: string) => boolean) | undefined;
}

const blocks = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const minBarWidth = 8;
const maxBarWidth = 30;

/** Columns that are left out first if the terminal is too narrow for all of them. */
const dispensable = ["WHOLE ANSWER", "FIRST TOKEN", "CACHED", "COMPLETION", "PROMPT", "ERRORS"];

const timeColumns: readonly (readonly [head: string, text: (row: Figures) => string])[] = [
  ["FIRST TOKEN", (row) => percentilesText(row.times?.firstToken)],
  ["WHOLE ANSWER", (row) => percentilesText(row.times?.total)],
];

/** Prints rows in the given order, with a total if there are several. */
export function printUsage(terminal: Terminal, rows: readonly UsageRow[], options: UsageTableOptions): void {
  const { bucket, groups, whole = rows, isUnpriced = () => false } = options;
  const { out } = terminal;
  const digits = usdDigits(rows.map((row) => row.cost));
  const isFree = (row: Figures & { model?: string | null | undefined }) =>
    costsNothing(row) && row.model != null && isUnpriced(row.model);
  const times = timesOfRows(whole);
  const figures: readonly (readonly [head: string, text: (row: Figures) => string])[] = [
    ["REQUESTS", (row) => formatCount(row.requests)],
    ["PROMPT", (row) => formatCount(row.prompt_tokens)],
    // The column is left out if it is empty, because most servers report no cached tokens.
    ...(rows.some((row) => row.cached_tokens)
      ? [["CACHED", (row: Figures) => formatCount(row.cached_tokens ?? 0)] as const]
      : []),
    ["COMPLETION", (row) => formatCount(row.completion_tokens)],
    ["TOKENS", (row) => formatCount(row.total_tokens)],
    ["COST", (row) => (isFree(row) ? "no price" : formatUsd(row.cost, digits))],
    ["ERRORS", (row) => formatCount(row.errors)],
    ...(times === undefined ? [] : timeColumns),
  ];
  const period = bucket === undefined ? [] : [`${bucket.toUpperCase()} (UTC)`];
  const names = [...period, ...groups.map((name) => name.toUpperCase())];
  const cells = rows.map((row) => [
    ...(bucket === undefined ? [] : [periodOf(row.start, bucket)]),
    ...groups.map((name) => row[name] ?? "-"),
    ...figures.map(([, text]) => text({ ...row, times: timesOfRows([row]) })),
  ]);
  if (rows.length > 1) {
    const total = sum(whole);
    cells.push([...names.map((_, at) => (at === 0 ? "total" : "")), ...figures.map(([, text]) => text(total))]);
  }
  const header = [...names, ...figures.map(([head]) => head)];
  const [shownHeader = [], ...shownCells] = withoutColumns([header, ...cells], dispensable, out.columns);
  const numeric = shownHeader.map((_, column) => column).slice(names.length);
  const table = formatTable(shownHeader, shownCells, out, numeric);
  const [first = "", ...lines] = table.split("\n");
  // On a narrow terminal a row takes several lines, so bars would be beside the wrong lines.
  if (lines.length !== cells.length) {
    terminal.print(table);
  } else {
    const drawn = withBars(lines, rows, terminal);
    terminal.print([first, ...drawn.slice(0, rows.length), ...drawn.slice(rows.length).map(out.bold)].join("\n"));
  }
  const sentence = timesSentence(times);
  if (sentence !== undefined) terminal.print(out.dim(sentence));
}

/**
 * Returns the `limit` groups of rows with the highest total cost. Groups of equal cost are ordered by their tokens. If
 * there are more groups, a last row has their sum.
 */
export function topUsage(rows: readonly UsageRow[], groups: readonly UsageGroup[], limit: number): UsageRow[] {
  const gathered = Map.groupBy(rows, (row) => JSON.stringify(groups.map((name) => row[name] ?? null)));
  const summed = [...gathered.values()].map((ofGroup) => joined(ofGroup, groups));
  summed.sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.total_tokens - a.total_tokens);
  const others = summed.slice(limit);
  if (others.length === 0) return summed;
  const [first] = groups;
  const label = `${formatCount(others.length)} others`;
  return [...summed.slice(0, limit), { ...joined(others, []), ...(first === undefined ? {} : { [first]: label }) }];
}

/** Returns one row for the whole time of the rows, which have the same `groups`. */
function joined(rows: readonly UsageRow[], groups: readonly UsageGroup[]): UsageRow {
  return {
    start: Math.min(...rows.map(({ start }) => start)),
    end: Math.max(...rows.map(({ end }) => end)),
    ...Object.fromEntries(groups.map((name) => [name, rows[0]?.[name] ?? null])),
    ...sum(rows),
  };
}

interface Figures extends Omit<UsageRow, "start" | "end" | "percentiles" | UsageGroup> {
  times?: TimeCounts | undefined;
}

/** Reports whether the row has usage but no cost. */
export function costsNothing({ cost, total_tokens: tokens }: Pick<UsageRow, "cost" | "total_tokens">): boolean {
  return cost === 0 && tokens > 0;
}

function sum(rows: readonly UsageRow[]): Figures {
  const total = (of: (row: UsageRow) => number) => rows.reduce((all, row) => all + of(row), 0);
  const priced = rows.some((row) => row.cost != null);
  return {
    requests: total((row) => row.requests),
    prompt_tokens: total((row) => row.prompt_tokens),
    cached_tokens: total((row) => row.cached_tokens ?? 0),
    completion_tokens: total((row) => row.completion_tokens),
    total_tokens: total((row) => row.total_tokens),
    // Sums whole nano-USD, because sums of fractions would show 0.30000000000000004.
    cost: priced ? usdOf(total((row) => nanoOfUsd(row.cost ?? 0))) : null,
    errors: total((row) => row.errors),
    times: timesOfRows(rows),
  };
}

/** Returns the text for the start of a time bucket, in UTC whatever the local time zone. */
function periodOf(startSeconds: number, bucket: string): string {
  const text = new Date(startSeconds * 1000).toISOString();
  if (bucket === "month") return text.slice(0, 7);
  return bucket === "hour" ? text.slice(0, 16).replace("T", " ") : text.slice(0, 10);
}

/**
 * Adds a bar to each row: its tokens relative to the largest row. Leaves the bars out if they do not fit or the output
 * is no terminal.
 */
function withBars(lines: readonly string[], rows: readonly UsageRow[], terminal: Terminal): readonly string[] {
  const most = Math.max(...rows.map((row) => row.total_tokens));
  const width = Math.max(...lines.map((line) => Bun.stringWidth(line)));
  // The last column stays free, since a full line makes some terminals wrap.
  const room = Math.min(maxBarWidth, (terminal.stdout.columns ?? 80) - width - 3);
  if (terminal.stdout.isTTY !== true || !terminal.unicode || room < minBarWidth || rows.length < 2 || most === 0) {
    return lines;
  }
  return lines.map((line, index) => {
    const row = rows[index];
    if (row === undefined) return line;
    const gap = " ".repeat(width - Bun.stringWidth(line) + 2);
    return `${line}${gap}${terminal.out.green(bar(row.total_tokens / most, room))}`.trimEnd();
  });
}

/** Draws a bar in eighths of a column. A share above zero gets at least the thinnest bar. */
export function bar(share: number, width: number): string {
  const eighths = share > 0 ? Math.max(1, Math.round(share * width * 8)) : 0;
  return "█".repeat(Math.floor(eighths / 8)) + (blocks[eighths % 8] ?? "");
}
