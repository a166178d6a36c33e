// `headrace usage`, and the usage of one key: chooses the period and reads all pages of the answer.
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { operatorGroups, type UsageGroup, usageBuckets, usageGroups } from "../../domain/usage/usage.ts";
import type { ArgumentEntry, CommandEntry, OptionValues } from "../command.ts";
import { parseCount } from "../keys/key-settings.ts";
import { requestJson, requestText, understood } from "../login/api-request.ts";
import type { connectionOptions } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { readModels } from "../models/models.ts";
import { CliError, exitCodes } from "../terminal/terminal.ts";
import { parseEnd, parseStart } from "../terminal/when.ts";
import { allNames, isOfAll, ownerIds, ownerOptions, pathOf, requireAll, withAllNames } from "./all-accounts.ts";
import { withNames } from "./usage-names.ts";
import { costsNothing, printUsage, topUsage, type UsageRow, usageRow } from "./usage-table.ts";

const daySeconds = 86_400;

const usageHelp = `\
Hours, days and months are in UTC. A date is a whole day, and the last one is included.
A time such as 2026-11-20T18:00 is in this machine's zone. Without --days or --start, the
last 30 days are shown. With --group-by tag, a request with several tags is in the row of
each tag and once in the total.`;

const usageOptions = {
  days: ["--days <number>", "number of days, including today", parseCount],
  start: ["--start <when>", "first day or time to count", parseStart],
  end: ["--end <when>", "last day, or time, to count (default: now)", parseEnd],
  bucket: ["--bucket <size>", "time span of a row (default: day)", usageBuckets],
  groupBy: ["--group-by <names>", `group by ${usageGroups.join(", ")}; several with commas`, parseGroups],
  tag: ["--tag <name>", "only requests with this tag"],
  top: ["--top <number>", "with --group-by: one row each for the most expensive, over the whole time", parseCount],
  csv: ["--csv", "print CSV as the API gives it"],
  json: ["--json", "print the rows as the API gives them; with --top, its rows"],
} as const;
const operatorOptions = {
  ...usageOptions,
  ...ownerOptions,
  organization: ["--organization <id>", "with --all-accounts: show the accounts of one organization"],
} as const;
type UsageCall = ServerCall<OptionValues<typeof operatorOptions & typeof connectionOptions>>;

interface UsageFields {
  summary: string;
  description: string;
  arguments?: readonly [] | readonly [ArgumentEntry];
  examples: readonly string[];
  notes?: readonly string[];
  /** True if operators may ask for all accounts. */
  hasAllAccounts?: true;
  /** Returns the API path to read. `wanted` is the argument of the command, if it has one. */
  path(call: UsageCall, wanted: string): string | Promise<string>;
}

/**
 * Defines the command `usage`, for the account or for a key. The command reads `path` of the API and prints the usage.
 */
export function usageCommand(fields: UsageFields): CommandEntry {
  const { summary, description, notes = [] } = fields;
  return serverCommand({
    ...{ name: "usage", summary, description },
    arguments: fields.arguments ?? [],
    options: (fields.hasAllAccounts ? operatorOptions : usageOptions) as typeof operatorOptions,
    examples: fields.examples,
    help: [usageHelp, ...notes],
    async run(call, ...[wanted = ""]: string[]) {
      const { connect, options, context } = call;
      const path = await fields.path(call, wanted);
      const connection = await connect();
      if (options.csv && options.json) throw new CliError("--csv and --json exclude each other.", exitCodes.usage);
      const further = options.groupBy?.find((one) => !usageGroups.some((known) => known === one));
      requireAll(options, { [`group-by ${further}`]: further, organization: options.organization });
      const asked = usageQuery(options, context.nowMs());
      if (options.top !== undefined && options.csv) {
        throw new CliError("--top and --csv exclude each other. With --json, --top prints its rows.", exitCodes.usage);
      }
      const owner = await call.ask((_, signal) => ownerIds(options, connection, signal));
      const query = new URLSearchParams([...asked, ...Object.entries(owner)]);
      if (options.csv) return printCsv(call, `${path}?${query}`);
      const { rows: raw, names } = await call.ask((_, signal) => readPages(connection, path, query, signal));
      const rows = shownRows(raw, options, connection);
      const json = options.top === undefined ? raw : rows;
      return { json, show: () => showUsage(call, connection, { path, query, rows, names }) };
    },
  });
}

export const accountUsageCommand = usageCommand({
  summary: "show what this account has used",
  description: "Show what the account has used. Needs a key with the scope usage:read.",
  examples: [
    "headrace usage --days 7",
    "headrace usage --days 7 --group-by key --top 20",
    "headrace usage --bucket month --group-by model",
    "headrace usage --days 7 --group-by tag",
    "headrace usage --start 2026-11-01 --end 2026-11-30 --csv > november.csv",
    "headrace usage --days 1 --all-accounts --group-by account",
  ],
  hasAllAccounts: true,
  notes: [
    `With --all-accounts, the groups ${operatorGroups.slice(usageGroups.length).join(", ")} are known as well. Sums by
upstream or outcome and by another group than the model cover at most about a million requests.`,
  ],
  path: ({ options }) => pathOf("/usage", options),
});

async function printCsv({ ask, terminal }: UsageCall, path: string): Promise<undefined> {
  const request = { accept: "text/csv", timeoutMs: null };
  terminal.stdout.write(await ask((connection, signal) => requestText(connection, path, signal, request)));
}

async function showUsage(
  { ask, terminal, options }: UsageCall,
  connection: Connection,
  { path, query, rows, names }: { path: string; query: URLSearchParams; rows: readonly UsageRow[]; names: Names },
): Promise<void> {
  const read = (entries: readonly unknown[]) => readRows(entries, connection);
  if (rows.length === 0) return terminal.note("Nothing was used in that time.");
  const readGrants = async (signal: AbortSignal) => {
    const both = new URLSearchParams(query);
    both.set("group_by", "key,app");
    both.set("bucket", "month");
    return read((await readPages(connection, path, both, signal)).rows);
  };
  const named = isOfAll(options)
    ? rows.map((row) => withAllNames(row, names))
    : await ask((_, signal) => withNames(connection, rows, readGrants, signal));
  const { groupBy: groups = [] } = options;
  const bucket = options.top === undefined ? (options.bucket ?? "day") : undefined;
  const whole = groups.includes("tag") ? await readWhole() : undefined;
  const models = rows.some(costsNothing) ? await ask((_, signal) => readPrices(connection, signal)) : undefined;
  const isUnpriced = models && ((model: string) => models.get(model) !== true);
  printUsage(terminal, named, { bucket, groups, whole, isUnpriced });
  const without = [...(models ?? [])].filter(([, hasPrice]) => !hasPrice).map(([id]) => id);
  if (without.length > 0)
    terminal.note(`These models have no price, so the cost does not include them: ${namesOf(without)}.`);

  /** Reads the total separately, because a request with several tags is in several rows. */
  async function readWhole(): Promise<UsageRow[]> {
    const once = new URLSearchParams(query);
    once.delete("group_by");
    return read((await ask((_, signal) => readPages(connection, path, once, signal))).rows);
  }
}

function readRows(entries: readonly unknown[], connection: Connection): UsageRow[] {
  return entries.map((entry) => understood(usageRow, entry, connection, "usage report"));
}

function shownRows(
  raw: readonly unknown[],
  { top, groupBy = [] }: UsageCall["options"],
  connection: Connection,
): UsageRow[] {
  const rows = readRows(raw, connection);
  return top === undefined ? rows : topUsage(rows, groupBy, top);
}

const maxNames = 5;

function namesOf(ids: readonly string[]): string {
  const more = ids.length > maxNames ? ` and ${ids.length - maxNames} more` : "";
  return `${ids.slice(0, maxNames).join(", ")}${more}`;
}

/** Returns a map of models that tells whether each has a price. Undefined if the key may not list models. */
async function readPrices(connection: Connection, signal: AbortSignal): Promise<Map<string, boolean> | undefined> {
  try {
    const models = await readModels(connection, signal);
    return new Map(models.filter(({ alias_of: of }) => of == null).map(({ id, price }) => [id, price != null]));
  } catch (error) {
    if (error instanceof CliError && !signal.aborted) return undefined;
    throw error;
  }
}

function usageQuery(options: UsageCall["options"], nowMs: number): URLSearchParams {
  const { days, start, end, groupBy, tag, organization, top } = options;
  if (top !== undefined && (groupBy === undefined || options.bucket !== undefined)) {
    throw new CliError("--top needs --group-by, such as --group-by key, and no --bucket.", exitCodes.usage);
  }
  // With `--top`, all rows of a group are added up over the whole time. The longest buckets suffice for that.
  const bucket = top === undefined ? options.bucket : "month";
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
  if (tag !== undefined) query.set("tag", tag);
  if (organization !== undefined) query.set("organization", organization);
  return query;
}

type Names = Record<string, string>;
const usagePage = z.object({ data: z.array(z.unknown()), next: z.string().nullish(), names: allNames });

export async function readPages(
  connection: Connection,
  path: string,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<{ rows: unknown[]; names: Names }> {
  const rows: unknown[] = [];
  const known: Names = {};
  const params = new URLSearchParams(query);
  for (;;) {
    const answer = await requestJson(connection, `${path}?${params}`, signal);
    const { data, next, names } = understood(usagePage, answer, connection, "usage report");
    rows.push(...data);
    Object.assign(known, names);
    if (!next || next === params.get("cursor")) return { rows, names: known };
    params.set("cursor", next);
  }
}

function parseGroups(text: string): UsageGroup[] {
  return text.split(",").map((part) => {
    const found = operatorGroups.find((name) => name === part.trim());
    if (found) return found;
    throw new InvalidArgumentError(`Choose from ${operatorGroups.join(", ")}, separated by commas.`);
  });
}
