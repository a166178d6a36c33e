// `headrace requests`: the requests of the account that ended or were refused, and why one of them ended as it did.
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { findKey } from "../keys/key-records.ts";
import { ApiError, requestJson, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTime } from "../terminal/figures.ts";
import { CliError, exitCodes, interruptible } from "../terminal/terminal.ts";
import { listedRequest, requestDetail } from "./request-records.ts";
import { printRequest, printRequests } from "./request-view.ts";
import { parseEnd, parseStart } from "./usage.ts";
import { withNames } from "./usage-names.ts";

interface RequestsOptions extends ConnectionOptions {
  limit: number;
  model?: string;
  key?: string;
  app?: string;
  outcome?: string;
  stream?: string;
  /** Unix seconds. */
  start?: number;
  end?: number;
  json?: boolean;
}

const outcomes = ["completed", "failed", "refused", "cancelled", "interrupted"];
const defaultLimit = 20;
const mostListed = 1_000;
const pageRows = 200;
/** Each looks through as much as the server does for one page; where nothing is found it says how far it got. */
const mostPages = 20;

export function registerRequests(program: Command, context: CliContext): void {
  const requests = program
    .command("requests")
    .summary("single requests, and why one ended as it did")
    .description("List the requests that ended or were refused, newest first. Needs a key with the scope usage:read.");
  addConnectionOptions(
    requests
      .option("--limit <number>", "how many to list", parseLimit, defaultLimit)
      .option("--model <id>", "only those for this model")
      .option("--key <key>", "only those of this key: its id, name or last four characters")
      .option("--app <id>", "only those of this app")
      .addOption(new Option("--outcome <word>", "only those that ended so").choices(outcomes))
      .addOption(new Option("--stream <yes>", "only those that were streamed, or were not").choices(["true", "false"]))
      .option("--start <when>", "first day or time", parseStart)
      .option("--end <when>", "last day, or time (default: now)", parseEnd)
      .option("--json", "print them as the API gives them"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace requests --outcome refused
  headrace requests --model llama3.2:3b --start 2026-11-20
  headrace requests show req_01935a7c-2f10-7c3a-9b1e-5f0a4c2d7e11

Times are of this machine's zone, dates alone whole days of UTC.
${connectionHelp}`,
    )
    .action((options: RequestsOptions) => listThem(context, options));

  const show = requests
    .command("show")
    .summary("one request: what was tried, or why it was refused")
    .description("Show one request with its trail: which model servers were tried, and what came of each.");
  addConnectionOptions(
    show
      .argument("<id>", "the x-request-id of its answer, req_…")
      .option("--json", "print the request as the API gives it"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace requests show req_01935a7c-2f10-7c3a-9b1e-5f0a4c2d7e11

Names of model servers, and what they said, are shown to operators: use a key
with the scope admin:manage.
${connectionHelp}`,
    )
    // Of an option that both have, the command that it is part of gets the value.
    .action((id: string, _: unknown, command: Command) => showOne(context, id, command.optsWithGlobals()));
}

async function listThem(context: CliContext, options: RequestsOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  if (options.start !== undefined && options.end !== undefined && options.end <= options.start) {
    throw new CliError("--end must be after --start.", exitCodes.usage);
  }
  const connection = await findConnection(context, options);
  const { raw, searchedTo } = await interruptible(async (signal) =>
    readRequests(connection, await queryOf(connection, options, signal), options.limit, signal),
  );
  if (options.json) {
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  const entries = raw.map((entry) => understood(listedRequest, entry, connection, "list of requests"));
  if (entries.length === 0) {
    const back = searchedTo === null ? "" : ` back to ${formatTime(searchedTo)}; --end goes on from there`;
    terminal.note(`No such request${back}.`);
    return;
  }
  // Of grants the app is known by the requests themselves.
  const named = await interruptible((signal) => withNames(connection, entries, async () => [], signal));
  printRequests(terminal, named);
}

async function queryOf(
  connection: Connection,
  { model, key, app, outcome, stream, start, end }: RequestsOptions,
  signal: AbortSignal,
): Promise<URLSearchParams> {
  const query = new URLSearchParams();
  const keyId =
    key === undefined || /^(key|mbr|grt)_/.test(key) ? key : (await findKey(connection, key, signal)).key.id;
  for (const [name, value] of Object.entries({ model, key: keyId, app, outcome, stream, start, end })) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query;
}

const requestPage = z.object({
  data: z.array(z.unknown()),
  next: z.string().nullish(),
  searched_to: z.number().nullish(),
});

/** `searchedTo`: Unix seconds up to which was looked, where that is not all. */
async function readRequests(
  connection: Connection,
  query: URLSearchParams,
  limit: number,
  signal: AbortSignal,
): Promise<{ raw: unknown[]; searchedTo: number | null }> {
  const raw: unknown[] = [];
  for (let pages = 1; ; pages++) {
    query.set("limit", String(Math.min(pageRows, limit - raw.length)));
    const answer = await requestJson(connection, `/requests?${query}`, signal);
    const { data, next, searched_to } = understood(requestPage, answer, connection, "list of requests");
    raw.push(...data);
    if (!next || raw.length >= limit || pages === mostPages) return { raw, searchedTo: searched_to ?? null };
    query.set("cursor", next);
  }
}

async function showOne(context: CliContext, id: string, options: RequestsOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const raw = await interruptible((signal) =>
    requestJson(connection, `/requests/${encodeURIComponent(id)}`, signal).catch((error: unknown) => {
      throw error instanceof ApiError && error.status === 404 ? new CliError(notFound) : error;
    }),
  );
  if (options.json) {
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  const request = understood(requestDetail, raw, connection, "request");
  const [named = request] = await interruptible((signal) => withNames(connection, [request], async () => [], signal));
  printRequest(terminal, named);
}

const notFound =
  "There is no such request in the account and environment of this key. It may be running still, or be one of very many that were refused, of which not all are kept; what was answered with 401 is in the audit log.";

function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= mostListed) return limit;
  throw new InvalidArgumentError(`Give a whole number from 1 to ${mostListed}.`);
}
