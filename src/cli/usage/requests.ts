// `headrace requests`: lists the account's finished and refused requests, and explains the result of one.
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import type { OptionValues } from "../command.ts";
import { findKey } from "../keys/key-records.ts";
import { ApiError, requestJson, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatTime } from "../terminal/figures.ts";
import { CliError, exitCodes } from "../terminal/terminal.ts";
import { parseEnd, parseStart } from "../terminal/when.ts";
import { allNames, isOfAll, ownerIds, ownerOptions, pathOf, requireAll, withAllNames } from "./all-accounts.ts";
import { listedRequest, requestDetail } from "./request-records.ts";
import { printRequest, printRequests } from "./request-view.ts";
import { withNames } from "./usage-names.ts";

const outcomes = ["completed", "failed", "refused", "cancelled", "interrupted"] as const;
const defaultLimit = 20;
const maxListed = 1_000;
const pageRows = 200;
/**
 * Maximum number of pages that are read. The server searches a limited number of requests for each page. If none match,
 * its answer says how far the server searched.
 */
const maxPages = 20;

const notFound = (isOfAll: boolean) =>
  `There is no such request in ${isOfAll ? "any account" : "the account and environment of this key"}. It may be running still, or be one of very many that were refused, of which not all are kept; what was answered with 401 is in the audit log.${isOfAll ? "" : " Operators find requests of other accounts with --all-accounts."}`;

const keyNeedsId =
  "With --all-accounts, --key needs the id of a key, key_…, because keys of several accounts may have the same name. `headrace accounts keys <account>` lists the ids.";

const listOptions = {
  limit: ["--limit <number>", "how many to list", parseLimit, defaultLimit],
  model: ["--model <id>", "only requests for this model"],
  key: ["--key <key>", "only requests of this key: id, name or last four characters"],
  app: ["--app <id>", "only requests of this app"],
  tag: ["--tag <name>", "only requests with this tag"],
  outcome: ["--outcome <word>", "only requests with this outcome", outcomes],
  stream: ["--stream <yes>", "true: only streamed requests; false: only the others", ["true", "false"]],
  start: ["--start <when>", "first day or time", parseStart],
  end: ["--end <when>", "last day, or time (default: now)", parseEnd],
  ...ownerOptions,
  upstream: ["--upstream <name>", "with --all-accounts: only requests that this upstream was asked for"],
  json: ["--json", "print them as the API gives them"],
} as const;
type ListOptions = OptionValues<typeof listOptions>;

const showCommand = serverCommand({
  name: "show",
  summary: "show one request: its attempts, or why it was refused",
  description: "Show one request and its attempts: which model servers were tried, and the result of each.",
  arguments: [["<id>", "the x-request-id of its answer, req_…"]],
  options: { allAccounts: ownerOptions.allAccounts, json: ["--json", "print the request as the API gives it"] },
  examples: ["headrace requests show req_01935a7c-2f10-7c3a-9b1e-5f0a4c2d7e11"],
  help: [
    `Names of model servers, and what they said, are shown to operators: use an
operator's key, from headrace operator-key.`,
  ],
  async run({ connect, ask, terminal, options }, id) {
    const connection = await connect();
    const raw = await ask((_, signal) =>
      requestJson(connection, `${pathOf("/requests", options)}/${encodeURIComponent(id)}`, signal).catch(
        (error: unknown) => {
          throw error instanceof ApiError && error.status === 404 ? new CliError(notFound(isOfAll(options))) : error;
        },
      ),
    );
    const show = async () => {
      const request = understood(requestDetail, raw, connection, "request");
      if (options.allAccounts) return printRequest(terminal, withAllNames(request, request.names ?? {}));
      const [named = request] = await ask((_, signal) => withNames(connection, [request], async () => [], signal));
      printRequest(terminal, named);
    };
    return { json: raw, show };
  },
});

export const requestsCommand = serverCommand({
  name: "requests",
  summary: "list requests, and show why one failed",
  description: "List the requests that ended or were refused, newest first. Needs a key with the scope usage:read.",
  options: listOptions,
  examples: [
    "headrace requests --outcome refused",
    "headrace requests --model llama3.2:3b --start 2026-11-20",
    "headrace requests show req_01935a7c-2f10-7c3a-9b1e-5f0a4c2d7e11",
    "headrace requests --all-accounts --upstream gpu-1 --outcome failed",
  ],
  help: ["Times are of this machine's zone, dates alone whole days of UTC."],
  commands: [showCommand],
  async run({ connect, ask, options, terminal }) {
    const { start, end } = options;
    if (start !== undefined && end !== undefined && end <= start) {
      throw new CliError("--end must be after --start.", exitCodes.usage);
    }
    const connection = await connect();
    const { raw, searchedTo, names } = await ask(async (_, signal) =>
      readRequests(connection, await queryOf(connection, options, signal), options, signal),
    );
    const show = async () => {
      const entries = raw.map((entry) => understood(listedRequest, entry, connection, "list of requests"));
      if (entries.length === 0) {
        const back = searchedTo === null ? "" : ` back to ${formatTime(searchedTo)}; --end goes on from there`;
        return terminal.note(`No such request${back}.`);
      }
      if (isOfAll(options))
        return printRequests(
          terminal,
          entries.map((entry) => withAllNames(entry, names)),
        );
      // The entries already name the app, so `readGrants` needs no request and returns an empty list.
      printRequests(terminal, await ask((_, signal) => withNames(connection, entries, async () => [], signal)));
    };
    return { json: raw, show };
  },
});

async function queryOf(connection: Connection, options: ListOptions, signal: AbortSignal): Promise<URLSearchParams> {
  const { model, key, app, tag, outcome, stream, start, end, upstream } = options;
  requireAll(options, { upstream });
  const isId = key === undefined || /^(key|mbr|grt)_/.test(key);
  if (!isId && isOfAll(options)) throw new CliError(keyNeedsId, exitCodes.usage);
  const owner = await ownerIds(options, connection, signal);
  const query = new URLSearchParams();
  const keyId = isId ? key : (await findKey(connection, key, signal)).key.id;
  for (const [name, value] of Object.entries({
    ...{ model, key: keyId, app, tag, outcome, stream, start, end },
    ...owner,
    upstream,
  })) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query;
}

const requestPage = z.object({
  data: z.array(z.unknown()),
  next: z.string().nullish(),
  searched_to: z.number().nullish(),
  names: allNames,
});

/**
 * Reads the requests. If the server did not search everything, `searchedTo` is the Unix time back to which it searched.
 */
async function readRequests(
  connection: Connection,
  query: URLSearchParams,
  options: ListOptions,
  signal: AbortSignal,
): Promise<{ raw: unknown[]; searchedTo: number | null; names: Record<string, string> }> {
  const { limit } = options;
  const raw: unknown[] = [];
  const known: Record<string, string> = {};
  for (let pages = 1; ; pages++) {
    query.set("limit", String(Math.min(pageRows, limit - raw.length)));
    const answer = await requestJson(connection, `${pathOf("/requests", options)}?${query}`, signal);
    const { data, next, searched_to, names } = understood(requestPage, answer, connection, "list of requests");
    raw.push(...data);
    Object.assign(known, names);
    if (!next || raw.length >= limit || pages === maxPages) {
      return { raw, searchedTo: searched_to ?? null, names: known };
    }
    query.set("cursor", next);
  }
}

function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= maxListed) return limit;
  throw new InvalidArgumentError(`Give a whole number from 1 to ${maxListed}.`);
}
