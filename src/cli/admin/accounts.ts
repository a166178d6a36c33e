// `headrace accounts`: lists, creates, changes, suspends and resumes accounts. For operators.
import type { z } from "zod";
import type { GivenQuotaRule } from "../../domain/limits/quota-rules.ts";
import { type AccountQuotaWire, accountDetailsShape, accountShape } from "../../wire/accounts.ts";
import { type Column, type CommandEntry, command, type Outcome, printRows, refuseNoChange } from "../command.ts";
import { keyRecord } from "../keys/key-records.ts";
import { parseCount, parseUsd } from "../keys/key-settings.ts";
import { keyColumns, narrowKeys } from "../keys/key-view.ts";
import { parseQuotas, quotaFacts, quotasHelp, quotaWords, shareOf } from "../keys/quota-view.ts";
import { requestJson, requestList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatCount, formatTime, formatUsd } from "../terminal/figures.ts";
import { CliError, formatFacts, printable, type Terminal } from "../terminal/terminal.ts";

type Account = z.infer<typeof accountShape>;

export const accountArgument = ["<account>", "name, or id"] as const;
const json = ["--json", "print the account as the API gives it"] as const;

export const accountPath = (id: string) => `/admin/accounts/${encodeURIComponent(id)}`;

type What = "account" | "organization";
type Found<Id> = (connection: Connection, which: string, signal: AbortSignal) => Promise<Id>;

/**
 * Returns a function that finds the id for a name. If the argument begins with `prefix`, it is an id already and is
 * returned unchanged.
 */
export function findIdOfName(
  path: string,
  shape: z.ZodType<{ id: string; name: string }>,
  prefix: string,
  what: What,
): Found<string | undefined> {
  return async (connection, which, signal) => {
    if (which.startsWith(prefix)) return which;
    const listed = await requestList(connection, path, signal);
    const all = listed.map((raw) => understood(shape, raw, connection, `list of ${what}s`));
    const [only, ...others] = all.filter(({ name }) => name.toLowerCase() === which.toLowerCase());
    if (only === undefined || others.length === 0) return only?.id;
    const ids = [only, ...others].map(({ id }) => `  ${id}`);
    throw new CliError(`Several ${what}s have this name. Name one by its id:\n${ids.join("\n")}`);
  };
}

/** Wraps `find`: the returned function rejects with a CliError if nothing has the given name. */
export function idOfName(find: Found<string | undefined>, what: What): Found<string> {
  return async (connection, which, signal) => {
    const id = await find(connection, which, signal);
    if (id !== undefined) return id;
    throw new CliError(`There is no ${what} \`${printable(which)}\`. headrace ${what}s lists them.`);
  };
}

export const findAccountId = findIdOfName("/admin/accounts", accountShape, "acct_", "account");
export const accountId = idOfName(findAccountId, "account");

/** Returns the id of an account that exists. A filter for an unknown id would find nothing, without an error. */
export async function existingAccountId(connection: Connection, which: string, signal: AbortSignal): Promise<string> {
  const id = await accountId(connection, which, signal);
  if (id === which) await requestJson(connection, accountPath(id), signal);
  return id;
}

const columns: Column<Account>[] = [
  ["NAME", ({ name }) => name],
  ["ID", ({ id }) => id],
  ["TIER", ({ tier }) => tier],
  ["STATUS", ({ status }) => status],
  ["OWN LIMITS", limitsText],
  ["CREATED", ({ created_at: at }) => formatTime(at)],
];

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the accounts (the default)",
  description: `List all accounts, oldest first. ${operatorNeeds}`,
  options: {
    suspended: ["--suspended", "only suspended accounts"],
    json: ["--json", "print the list as the API gives it"],
  },
  examples: ["headrace accounts", "headrace accounts list --suspended"],
  async run({ connect, ask, options, terminal }) {
    const connection = await connect();
    const all = await ask((_, signal) => requestList(connection, "/admin/accounts", signal));
    const accounts = all.map((raw) => ({ raw, ...understood(accountShape, raw, connection, "list of accounts") }));
    const shown = accounts.filter(({ status }) => !options.suspended || status === "suspended");
    const show = () => {
      if (shown.length === 0) return terminal.note("No account is suspended.");
      printRows(terminal, shown, columns, [], ["CREATED", "OWN LIMITS"]);
    };
    return { json: shown.map(({ raw }) => raw), show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show one account: limits and usage of this month",
  description: `Show one account with its limits, and its usage of this month in each environment. ${operatorNeeds}`,
  arguments: [accountArgument],
  options: { json },
  examples: ["headrace accounts show 'Web shop'"],
  async run({ connect, ask, request, terminal, nowSeconds }, which) {
    const connection = await connect();
    const answer = await request(accountPath(await ask((_, signal) => accountId(connection, which, signal))));
    const show = () => {
      const account = understood(accountDetailsShape, answer, connection, "account");
      printAccount(terminal, account);
      printMonths(terminal, account.quota, nowSeconds());
    };
    return { json: answer, show };
  },
});

const createCommand = serverCommand({
  name: "create",
  summary: "create an account",
  description: `Create an account, which has no key and no member yet. ${operatorNeeds}`,
  arguments: [["<name>", "display name"]],
  options: { tier: ["--tier <name>", "its tier (default: free)"], json },
  examples: ["headrace accounts create 'Web shop' --tier pro"],
  async run({ connect, request, options, terminal }, name) {
    const connection = await connect();
    const answer = await request("/admin/accounts", { method: "POST", body: { name, tier: options.tier } });
    const show = () => {
      const made = understood(accountShape, answer, connection, "account");
      printAccount(terminal, made);
      terminal.note(`To let its owner in: headrace people invite <e-mail address> --account ${made.id} --role owner`);
    };
    return { json: answer, show };
  },
});

const ownLimit = (parse: (text: string) => number) => (text: string) =>
  text === "unlimited" ? text : text === "tier" ? "none" : parse(text);

const setCommand = serverCommand({
  name: "set",
  summary: "change an account's name, tier and limits",
  description: `Change an account, from its next request on. Options that you leave out stay. ${operatorNeeds}`,
  arguments: [accountArgument],
  options: {
    name: ["--name <name>", "another name"],
    tier: ["--tier <name>", "another tier"],
    monthlyTokens: ["--monthly-tokens <number>", "tokens per month, unlimited, or tier", ownLimit(parseCount)],
    monthlySpend: ["--monthly-spend <usd>", "USD per month, unlimited, or tier for its tier's", ownLimit(parseUsd)],
    quotas: [
      "--quotas <quotas>",
      'such as "200 requests per 5h", none, or tier for its tier\'s',
      (text: string): GivenQuotaRule[] | "none" =>
        text === "tier" ? "none" : text === "none" ? [] : parseQuotas(text),
    ],
    json,
  },
  examples: [
    "headrace accounts set 'Web shop' --monthly-spend 500",
    'headrace accounts set acct_01a1… --tier pro --quotas "20 usd per day"',
  ],
  help: [quotasHelp],
  run(call, which) {
    const { name, tier, monthlyTokens, monthlySpend, quotas } = call.options;
    const given = { name, tier, monthly_tokens: monthlyTokens, monthly_spend: monthlySpend, quotas };
    const body = Object.fromEntries(
      Object.entries(given).flatMap(([field, value]) =>
        value === undefined ? [] : [[field, value === "none" ? null : value]],
      ),
    );
    refuseNoChange(body, "--monthly-spend 500");
    return change(call, which, body, (account) => printAccount(call.terminal, account));
  },
});

const suspendCommand = statusCommand({
  name: "suspend",
  status: "suspended",
  summary: "block an account",
  description: "Refuse all keys, apps and logins of an account. headrace accounts resume lets them in again.",
  outcome: "is suspended: its keys, apps and logins are refused.",
});

const resumeCommand = statusCommand({
  name: "resume",
  status: "active",
  summary: "let a suspended account in again",
  description: "Let the keys, apps and logins of a suspended account in again.",
  outcome: "is active.",
});

interface StatusFields {
  name: string;
  status: Account["status"];
  summary: string;
  description: string;
  outcome: string;
}

function statusCommand({ status, outcome, description, ...fields }: StatusFields): CommandEntry {
  return serverCommand({
    ...fields,
    description: `${description} ${operatorNeeds}`,
    arguments: [accountArgument],
    options: { json },
    examples: [`headrace accounts ${fields.name} 'Web shop'`],
    run: (call, which) =>
      change(call, which, { status }, ({ name }) => call.terminal.print(`${printable(name)} ${outcome}`)),
  });
}

const keysCommand = serverCommand({
  name: "keys",
  summary: "list the API keys of an account",
  description: `List the API keys of an account, in all environments, newest first. ${operatorNeeds}`,
  arguments: [accountArgument],
  options: {
    all: ["--all", "include revoked keys"],
    json: ["--json", "print all of them as the API gives them, revoked ones included"],
  },
  examples: ["headrace accounts keys 'Web shop'"],
  async run({ connect, ask, options, terminal, nowSeconds }, which) {
    const connection = await connect();
    const raw = await ask(async (_, signal) =>
      requestList(connection, `${accountPath(await accountId(connection, which, signal))}/keys`, signal),
    );
    const show = () => {
      const keys = raw.map((entry) => understood(keyRecord, entry, connection, "list of keys"));
      const shown = keys.filter(({ status }) => options.all || status !== "revoked");
      if (shown.length > 0) return printRows(terminal, shown, keyColumns(nowSeconds()), [], narrowKeys);
      const hidden = keys.length - shown.length;
      terminal.note(hidden === 0 ? "The account has no keys." : `All ${hidden} keys are revoked; see --all.`);
    };
    return { json: raw, show };
  },
});

export const accountsCommand = command({
  name: "accounts",
  summary: "list, create, change, suspend and resume accounts",
  description: `Manage the accounts of the installation. ${operatorNeeds}`,
  examples: [
    "headrace accounts                                     list them",
    "headrace accounts show 'Web shop'                     limits, and usage of this month",
    "headrace accounts set 'Web shop' --monthly-spend 500",
    "headrace accounts suspend 'Web shop'",
    "headrace accounts keys 'Web shop'",
  ],
  commands: [...[listCommand, showCommand, createCommand, setCommand], ...[suspendCommand, resumeCommand, keysCommand]],
});

async function change(
  { connect, ask, request }: ServerCall<unknown>,
  which: string,
  body: Readonly<Record<string, unknown>>,
  showChanged: (account: Account) => void,
): Promise<Outcome> {
  const connection = await connect();
  const id = await ask((_, signal) => accountId(connection, which, signal));
  const answer = await request(accountPath(id), { method: "PATCH", body });
  return { json: answer, show: () => showChanged(understood(accountShape, answer, connection, "account")) };
}

function printAccount({ print, out }: Terminal, account: Account): void {
  const { bold, green, yellow } = out;
  const colour = account.status === "active" ? green : yellow;
  print(`${bold(printable(account.name))}  ${colour(account.status)}\n`);
  const facts: [string, string][] = [
    ["ID", account.id],
    ["Tier", account.tier],
    ["Own limits", limitsText(account)],
    ...(account.organization === null ? [] : [["Organization", account.organization] as [string, string]]),
    ["Created", formatTime(account.created_at)],
  ];
  print(formatFacts(facts, out));
}

/** Prints the limits and usage of each environment that has some. */
export function printMonths(terminal: Terminal, { environments }: AccountQuotaWire, nowSeconds: number): void {
  for (const { environment, tokens, spend, windows } of environments) {
    if (tokens.used === 0 && spend.used === 0 && tokens.limit === null && spend.limit === null) continue;
    terminal.print(`\n${environment}, this month:`);
    const facts: [string, string][] = [
      ["Tokens", shareOf(tokens, formatCount, terminal.unicode)],
      ["Spend", shareOf(spend, formatUsd, terminal.unicode)],
      ...quotaFacts(windows, terminal.unicode, nowSeconds),
    ];
    terminal.print(formatFacts(facts, terminal.out));
  }
}

/** Describes the account's own limits, which replace the tier's. */
function limitsText({ monthly_tokens: tokens, monthly_spend: spend, quotas }: Account): string {
  const monthly = (value: number | string | null, text: (value: number) => string, unit: string) =>
    value === null ? [] : [`${typeof value === "number" ? text(value) : "any"}${unit} per month`];
  const parts = [
    ...monthly(tokens, formatCount, " tokens"),
    ...monthly(spend, formatUsd, typeof spend === "number" ? "" : " spend"),
    ...(quotas === null ? [] : [quotaWords(quotas) || "no quotas"]),
  ];
  return parts.join(", ") || "-";
}
