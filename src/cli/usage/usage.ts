// `headrace usage`, and the usage of one key: which time to ask for, and the pages of the answer.
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { type UsageGroup, usageBuckets, usageGroups } from "../../domain/usage/usage.ts";
import { parseCount } from "../keys/key-settings.ts";
import { requestJson, requestText, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import type { CliContext } from "../terminal/context.ts";
import { parseDate, parseTime } from "../terminal/figures.ts";
import { CliError, exitCodes, interruptible } from "../terminal/terminal.ts";
import { withNames } from "./usage-names.ts";
import { printUsage, usageRow } from "./usage-table.ts";

export interface UsageOptions extends ConnectionOptions {
  days?: number;
  /** Unix seconds. */
  start?: number;
  end?: number;
  bucket?: string;
  groupBy?: UsageGroup[];
  csv?: boolean;
  json?: boolean;
}

const daySeconds = 86_400;

export const usageHelp = `
Hours, days and months are those of UTC. A date is a whole day, the last one
included; a time such as 2026-11-20T18:00 is of this machine's zone. Without
--days or --start it is the last 30 days.`;

export function addUsageOptions(command: Command): Command {
  const withOwn = command
    .option("--days <number>", "the last days, today included", parseCount)
    .option("--start <when>", "first day or time to count", parseStart)
    .option("--end <when>", "last day, or time, to count (default: now)", parseEnd)
    .addOption(new Option("--bucket <size>", "length of the rows' time (default: day)").choices([...usageBuckets]))
    .option("--group-by <names>", `separate rows for each ${usageGroups.join(", ")}; several with commas`, parseGroups)
    .option("--csv", "print CSV as the API gives it")
    .option("--json", "print the rows as the API gives them");
  return addConnectionOptions(withOwn);
}

export function registerUsage(program: Command, context: CliContext): void {
  addUsageOptions(
    program
      .command("usage")
      .summary("what this account has used")
      .description("Show what the account has used. Needs a key with the scope usage:read."),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace usage --days 7
  headrace usage --bucket month --group-by model
  headrace usage --start 2026-11-01 --end 2026-11-30 --csv > november.csv
${usageHelp}
${connectionHelp}`,
    )
    .action(async (options: UsageOptions) => {
      context.begin();
      await showUsage(context, await findConnection(context, options), "/usage", options);
    });
}

/** Prints what `path` of the API tells, in the form that the options ask for. */
export async function showUsage(
  context: CliContext,
  connection: Connection,
  path: string,
  options: UsageOptions,
): Promise<void> {
  if (options.csv && options.json) throw new CliError("--csv and --json exclude each other.", exitCodes.usage);
  const { terminal } = context;
  const query = usageQuery(options, context.nowMs());
  if (options.csv) {
    const request = { accept: "text/csv", timeoutMs: null };
    const text = await interruptible((signal) => requestText(connection, `${path}?${query}`, signal, request));
    terminal.stdout.write(text);
    return;
  }
  const raw = await interruptible((signal) => readPages(connection, path, query, signal));
  if (options.json) {
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  const understoodRows = (entries: readonly unknown[]) =>
    entries.map((entry) => understood(usageRow, entry, connection, "usage report"));
  const rows = understoodRows(raw);
  if (rows.length === 0) {
    terminal.note("Nothing was used in that time.");
    return;
  }
  const groups = options.groupBy ?? [];
  const readGrants = async (signal: AbortSignal) => {
    const both = new URLSearchParams(query);
    both.set("group_by", "key,app");
    both.set("bucket", "month");
    return understoodRows(await readPages(connection, path, both, signal));
  };
  const named = await interruptible((signal) => withNames(connection, rows, readGrants, signal));
  printUsage(terminal, named, { bucket: options.bucket ?? "day", groups });
}

function usageQuery({ days, start, end, bucket, groupBy }: UsageOptions, nowMs: number): URLSearchParams {
  if (days !== undefined && (start !== undefined || end !== undefined)) {
    throw new CliError("--days counts back from now: give it without --start and --end.", exitCodes.usage);
  }
  if (start !== undefined && end !== undefined && end <= start) {
    throw new CliError("--end must be after --start.", exitCodes.usage);
  }
  const today = Math.floor(nowMs / 1000 / daySeconds) * daySeconds;
  const from = days === undefined ? start : today - (days - 1) * daySeconds;
  const query = new URLSearchParams();
  if (from !== undefined) query.set("start", String(from));
  if (end !== undefined) query.set("end", String(end));
  if (bucket !== undefined) query.set("bucket", bucket);
  if (groupBy !== undefined) query.set("group_by", groupBy.join(","));
  return query;
}

const usagePage = z.object({ data: z.array(z.unknown()), next: z.string().nullish() });

async function readPages(
  connection: Connection,
  path: string,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<unknown[]> {
  const rows: unknown[] = [];
  const params = new URLSearchParams(query);
  for (;;) {
    const answer = await requestJson(connection, `${path}?${params}`, signal);
    const { data, next } = understood(usagePage, answer, connection, "usage report");
    rows.push(...data);
    if (!next || next === params.get("cursor")) return rows;
    params.set("cursor", next);
  }
}

function parseGroups(text: string): UsageGroup[] {
  return text.split(",").map((part) => {
    const found = usageGroups.find((name) => name === part.trim());
    if (found) return found;
    throw new InvalidArgumentError(`Choose from ${usageGroups.join(", ")}, separated by commas.`);
  });
}

export function parseStart(text: string): number {
  return parseWhen(text, 0);
}

export function parseEnd(text: string): number {
  return parseWhen(text, 1);
}

/** Unix seconds; of a date alone its beginning in UTC, `dayOffset` days later. */
function parseWhen(text: string, dayOffset: number): number {
  const date = parseDate(text);
  if (date) return Date.UTC(date.year, date.month - 1, date.day + dayOffset) / 1000;
  const at = parseTime(text);
  if (at !== undefined) return at;
  throw new InvalidArgumentError("Give a date such as 2026-11-20 or a time such as 2026-11-20T18:00.");
}
