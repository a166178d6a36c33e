// `headrace statement`: shows the usage and cost of a month, for one account, or for any account if the caller is an
// operator.
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { type StatementGroup, statementGroups } from "../../domain/usage/statement.ts";
import type { OptionValues } from "../command.ts";
import { requestText, understood } from "../login/api-request.ts";
import type { connectionOptions } from "../login/client.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { formatCount, formatTimeAndRelative, formatUsdColumn } from "../terminal/figures.ts";
import { CliError, exitCodes, formatTable, printable } from "../terminal/terminal.ts";

const figures = z.object({
  requests: z.number(),
  prompt_tokens: z.number(),
  cached_tokens: z.number(),
  cache_write_tokens: z.number(),
  completion_tokens: z.number(),
  reasoning_tokens: z.number(),
  unpriced_requests: z.number(),
  cost: z.string(),
});
const value = z.string().nullish();
const names = {
  ...{ key: value, key_name: value, person: value, person_name: value, model: value },
  ...{ app: value, app_name: value, tag: value, account: value, account_name: value },
};
const line = figures.extend(names);
const statement = z.object({
  month: z.string(),
  installation: z.string(),
  environment: z.string(),
  account: z.object({ id: z.string(), name: z.string() }).nullish(),
  organization: z.object({ id: z.string(), name: z.string() }).nullish(),
  of: z.object(names).nullish(),
  is_over: z.boolean(),
  overlaps: z.boolean().nullish(),
  unpriced_since: z.number().nullish(),
  lines: z.array(line),
  others: figures.extend({ lines: z.number().nullish() }).nullish(),
  total: figures,
});
type Statement = z.infer<typeof statement>;
type Line = z.infer<typeof line>;
type Column = StatementGroup | "account";

const options = {
  month: ["--month <month>", "such as 2026-10 (default: the current month)", parseMonth],
  by: ["--by <names>", `group by ${statementGroups.join(", ")}; several with commas`, parseGroups],
  key: ["--key <id>", "only usage of this key"],
  person: ["--person <id>", "only usage of this person, `usr_…`"],
  app: ["--app <id>", "only usage of this app"],
  tag: ["--tag <tag>", "only usage with this tag"],
  account: ["--account <id>", "any account, or all for one line each; for operators"],
  organization: ["--organization <id>", "one line for each account of it; for operators"],
  environment: ["--environment <name>", "with --account or --organization: the environment", environments],
  csv: ["--csv", "print all lines and the total as CSV"],
  json: ["--json", "print the statement as the API gives it"],
} as const;
type Options = OptionValues<typeof options & typeof connectionOptions>;

export const statementCommand = serverCommand({
  name: "statement",
  summary: "show the monthly statement by key, person, model, tag or app",
  description: "Show the statement of a month. Needs a key with the scope usage:read, or headrace login.",
  options,
  examples: [
    "headrace statement --month 2026-10 --by key",
    "headrace statement --by person,model",
    "headrace statement --month 2026-10 --by tag --csv > october.csv",
    "headrace statement --account all --month 2026-10",
  ],
  help: [
    `Months are those of UTC; a request belongs to the one in which it began. Lines add up
to the total, and the total to the ledger, to the last of nine decimals. By tag, a
request with several tags is in the line of each and once in the total.`,
    `Members see their own usage alone, unless an owner allowed more.`,
  ],
  async run(call) {
    const { ask, connect, request, terminal } = call;
    const path = pathOf(call.options);
    if (call.options.csv && call.options.json)
      throw new CliError("--csv and --json exclude each other.", exitCodes.usage);
    if (call.options.csv) {
      const accept = { accept: "text/csv", timeoutMs: null };
      terminal.stdout.write(await ask((connection, signal) => requestText(connection, path, signal, accept)));
      return undefined;
    }
    const connection = await connect();
    const answer = await request(path);
    const columns: readonly Column[] = isOfAll(call.options) ? ["account"] : (call.options.by ?? []);
    const show = () => {
      const found = understood(statement, answer, connection, "statement");
      const byCost = (one: Line, other: Line) => Number(other.cost) - Number(one.cost);
      const lines = isOfAll(call.options) ? found.lines.toSorted(byCost) : found.lines;
      print(call, { ...found, lines }, columns);
    };
    return { json: answer, show };
  },
});

function isOfAll({ account, organization }: Options): boolean {
  return account === "all" || organization !== undefined;
}

function pathOf(asked: Options): string {
  const { month, by, key, person, app, tag, account, organization, environment } = asked;
  if (organization !== undefined && account !== undefined) {
    throw new CliError("--organization and --account exclude each other.", exitCodes.usage);
  }
  if (environment !== undefined && account === undefined && organization === undefined) {
    throw new CliError("--environment is for --account: a key is of one environment.", exitCodes.usage);
  }
  if (isOfAll(asked) && (by ?? key ?? person ?? app ?? tag) !== undefined) {
    throw new CliError(
      "--account all and --organization always group by account. Leave out --by, --key, --person, --app and --tag.",
      exitCodes.usage,
    );
  }
  const query = new URLSearchParams();
  const given = { month, group_by: by?.join(","), key, person, app, tag, organization, environment };
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, value);
  const path = isOfAll(asked)
    ? "/admin/statement"
    : account === undefined
      ? "/statement"
      : `/admin/accounts/${encodeURIComponent(account)}/statement`;
  return query.size === 0 ? path : `${path}?${query}`;
}

function print(
  { terminal, nowSeconds }: Pick<ServerCall<Options>, "terminal" | "nowSeconds">,
  { lines, others, total, ...head }: Statement,
  columns: readonly Column[],
): void {
  const { account, organization, of, month, environment, installation } = head;
  const part = Object.entries(of ?? {}).flatMap(([name, id]) =>
    name.endsWith("_name") || id == null ? [] : [`${name} ${id}`],
  );
  const owner = account ?? organization;
  const whose = [owner ? printable(owner.name) : "all accounts", ...part.map(printable), environment].join(", ");
  terminal.print(`Statement of ${month} (UTC): ${whose}, ${printable(installation)}`);
  const shown = shownFigures([...lines, total]);
  const header = [...columns.map((name) => name.toUpperCase()), ...shown.map(({ head: text }) => text)];
  const cells = lines.map((one) => [
    ...columns.map((name) => nameOf(one, name)),
    ...shown.map(({ text }) => text(one)),
  ]);
  const rest = columns.slice(1).map(() => "");
  const named = (text: string) => (columns.length === 0 ? [] : [text, ...rest]);
  if (others)
    cells.push([
      ...named(others.lines == null ? "others" : `others: ${formatCount(others.lines)}`),
      ...shown.map(({ text }) => text(others)),
    ]);
  cells.push([...named("total"), ...shown.map(({ text }) => text(total))]);
  const numeric = header.map((_, at) => at).slice(columns.length);
  terminal.print(formatTable(header, cells, terminal.out, numeric));
  for (const note of notesOf({ ...head, total }, nowSeconds())) terminal.note(note);
}

interface Figure {
  head: string;
  text(sums: z.infer<typeof figures>): string;
}

/**
 * Returns the figures to show. Figures for partial token counts and unpriced requests are left out if they are all
 * zero.
 */
function shownFigures(all: readonly z.infer<typeof figures>[]): Figure[] {
  const counted = (head: string, name: Exclude<keyof z.infer<typeof figures>, "cost">, isPart = false): Figure[] =>
    isPart && !all.some((sums) => sums[name] > 0) ? [] : [{ head, text: (sums) => formatCount(sums[name]) }];
  const costText = formatUsdColumn(all.map(({ cost }) => cost));
  return [
    ...counted("REQUESTS", "requests"),
    ...counted("INPUT", "prompt_tokens"),
    ...counted("CACHED", "cached_tokens", true),
    ...counted("WRITTEN", "cache_write_tokens", true),
    ...counted("OUTPUT", "completion_tokens"),
    ...counted("REASONING", "reasoning_tokens", true),
    ...counted("NO PRICE", "unpriced_requests", true),
    { head: "USD", text: ({ cost }) => costText(cost) },
  ];
}

function nameOf(one: Line, column: Column): string {
  const id = one[column];
  if (id == null) return column === "person" ? "keys of the account" : "-";
  const name = column === "model" || column === "tag" ? undefined : one[`${column}_name`];
  return name == null ? id : name;
}

function notesOf(
  {
    is_over: isOver,
    overlaps,
    unpriced_since: since,
    total,
  }: Pick<Statement, "is_over" | "overlaps" | "unpriced_since" | "total">,
  nowSeconds: number,
): string[] {
  return [
    ...(isOver ? [] : ["The month is not over: what is used until then is added."]),
    ...(overlaps ? ["By tag: requests with several tags are in several lines, and once in the total."] : []),
    ...(total.unpriced_requests > 0
      ? [
          `Requests to models without a price, which are in no cost: ${formatCount(total.unpriced_requests)} of ${formatCount(total.requests)}.`,
        ]
      : []),
    ...(since == null
      ? []
      : [
          `Requests without a price are counted since ${formatTimeAndRelative(since, nowSeconds)}; some before may be missing.`,
        ]),
  ];
}

function parseMonth(text: string): string {
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text;
  throw new InvalidArgumentError("Give a month such as 2026-10.");
}

function parseGroups(text: string): StatementGroup[] {
  return text.split(",").map((part) => {
    const found = statementGroups.find((name) => name === part.trim());
    if (found) return found;
    throw new InvalidArgumentError(`Choose from ${statementGroups.join(", ")}, separated by commas.`);
  });
}
