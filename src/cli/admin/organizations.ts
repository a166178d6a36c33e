// `headrace organizations`: groups accounts, and sets limits for all accounts of a group together. For operators.
import type { z } from "zod";
import { accountAmounts, amountLabel, amountText, byName } from "../../domain/limits/amounts.ts";
import type { GivenQuotaRule } from "../../domain/limits/quota-rules.ts";
import { accountShape } from "../../wire/accounts.ts";
import { organizationDetailsShape, organizationShape } from "../../wire/operations/organizations.ts";
import { type Column, command, type Outcome, printRows, refuseNoChange } from "../command.ts";
import { parseAmount, parseUsd } from "../keys/key-settings.ts";
import { parseQuotas, quotasHelp, quotaWords } from "../keys/quota-view.ts";
import { requestList, understood } from "../login/api-request.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { type OrNone, orNone } from "../models/model-settings.ts";
import { formatCount, formatTime, formatUsd } from "../terminal/figures.ts";
import { formatFacts, printable, type Terminal } from "../terminal/terminal.ts";
import { accountArgument, accountId, findIdOfName, idOfName, printMonths } from "./accounts.ts";

type Organization = z.infer<typeof organizationShape>;

const organizationArgument = ["<organization>", "name, or id"] as const;
const json = ["--json", "print the organization as the API gives it"] as const;
const listPath = "/admin/organizations";
const organizationPath = (id: string) => `${listPath}/${encodeURIComponent(id)}`;

const organizationId = idOfName(findIdOfName(listPath, organizationShape, "org_", "organization"), "organization");

const columns: Column<Organization>[] = [
  ["NAME", ({ name }) => name],
  ["ID", ({ id }) => id],
  ["ACCOUNTS", ({ accounts }) => formatCount(accounts)],
  ["LIMITS", limitsText],
  ["CREATED", ({ created_at: at }) => formatTime(at)],
];

const limitOptions = {
  ...byName(accountAmounts, (amount) => {
    const [value, parse] = amount.unit === "USD" ? (["usd", parseUsd] as const) : (["number", parseAmount] as const);
    const flag = `--${amount.wire.replaceAll("_", "-")} <${value}>`;
    return [flag, `${amountText(amount)}, for all accounts together, or none`, orNone(parse)] as const;
  }),
  quotas: [
    "--quotas <quotas>",
    'such as "500 usd per day", or none',
    (text: string): GivenQuotaRule[] => (text === "none" ? [] : parseQuotas(text)),
  ],
} as const;
interface LimitOptions extends Partial<Record<(typeof accountAmounts)[number]["name"], OrNone<number> | undefined>> {
  quotas?: GivenQuotaRule[] | undefined;
}

function limitsIn(options: LimitOptions): Record<string, unknown> {
  const amounts = accountAmounts.map(({ name, wire }) => [wire, options[name] === "none" ? null : options[name]]);
  return Object.fromEntries([...amounts, ["quotas", options.quotas]].filter(([, value]) => value !== undefined));
}

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the organizations (the default)",
  description: `List the organizations, oldest first. ${operatorNeeds}`,
  options: { json: ["--json", "print the list as the API gives it"] },
  examples: ["headrace organizations"],
  async run({ connect, ask, terminal }) {
    const connection = await connect();
    const raw = await ask((_, signal) => requestList(connection, listPath, signal));
    const show = () => {
      const rows = raw.map((entry) => understood(organizationShape, entry, connection, "list of organizations"));
      if (rows.length === 0) return terminal.note("There are none. headrace organizations create <name> makes one.");
      printRows(terminal, rows, columns, [], ["CREATED"]);
    };
    return { json: raw, show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show one organization: limits, accounts and usage of this month",
  description: `Show the limits and accounts of an organization, and their usage of this month. ${operatorNeeds}`,
  arguments: [organizationArgument],
  options: { json },
  examples: ["headrace organizations show 'Example Group'"],
  async run({ connect, ask, request, terminal, nowSeconds }, which) {
    const connection = await connect();
    const path = organizationPath(await ask((_, signal) => organizationId(connection, which, signal)));
    const answer = await request(path);
    const listed = await ask((_, signal) => requestList(connection, `${path}/accounts`, signal));
    const show = () => {
      const organization = understood(organizationDetailsShape, answer, connection, "organization");
      const accounts = listed.map((raw) => understood(accountShape, raw, connection, "list of accounts"));
      printOrganization(terminal, organization);
      for (const { name, id } of accounts) terminal.print(`  ${printable(name)}  ${id}`);
      printMonths(terminal, organization.quota, nowSeconds());
    };
    return { json: answer, show };
  },
});

const createCommand = serverCommand({
  name: "create",
  summary: "create an organization",
  description: `Create an organization, which has no account yet. ${operatorNeeds}`,
  arguments: [["<name>", "display name"]],
  options: { ...limitOptions, json },
  examples: ["headrace organizations create 'Example Group' --monthly-spend 5000"],
  help: [quotasHelp],
  async run({ connect, request, options, terminal }, name) {
    const connection = await connect();
    const answer = await request(listPath, { method: "POST", body: { name, ...limitsIn(options) } });
    const show = () => {
      const made = understood(organizationShape, answer, connection, "organization");
      printOrganization(terminal, made);
      terminal.note(`To put an account into it: headrace organizations add ${made.id} <account>`);
    };
    return { json: answer, show };
  },
});

const setCommand = serverCommand({
  name: "set",
  summary: "change an organization's name and limits",
  description: `Change an organization, from the next request of its accounts on. Options that you leave out stay. ${operatorNeeds}`,
  arguments: [organizationArgument],
  options: { name: ["--name <name>", "another name"], ...limitOptions, json },
  examples: ["headrace organizations set 'Example Group' --monthly-spend 8000"],
  help: [quotasHelp],
  async run({ connect, ask, request, options, terminal }, which) {
    const body = { ...(options.name === undefined ? {} : { name: options.name }), ...limitsIn(options) };
    refuseNoChange(body, "--monthly-spend 8000");
    const connection = await connect();
    const id = await ask((_, signal) => organizationId(connection, which, signal));
    const answer = await request(organizationPath(id), { method: "PATCH", body });
    const show = () => printOrganization(terminal, understood(organizationShape, answer, connection, "organization"));
    return { json: answer, show };
  },
});

const deleteCommand = serverCommand({
  name: "delete",
  summary: "delete an organization without accounts",
  description: `Delete an organization that has no accounts. ${operatorNeeds}`,
  arguments: [organizationArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace organizations delete 'Example Group'"],
  async run({ connect, ask, request, confirm, terminal }, which) {
    const connection = await connect();
    const id = await ask((_, signal) => organizationId(connection, which, signal));
    await confirm({ question: `Delete the organization ${which}` });
    const answer = await request(organizationPath(id), { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`The organization ${printable(which)} is deleted.`) };
  },
});

const moveFields = {
  arguments: [organizationArgument, accountArgument],
  options: { json: ["--json", "print the account as the API gives it"] },
} as const;

const addCommand = serverCommand({
  ...moveFields,
  name: "add",
  summary: "put an account into an organization",
  description: `Put an account into an organization. It leaves its previous one. ${operatorNeeds}`,
  examples: ["headrace organizations add 'Example Group' 'Web shop'"],
  run: (call, which, account) => move(call, "PUT", which, account),
});

const removeCommand = serverCommand({
  ...moveFields,
  name: "remove",
  summary: "take an account out of an organization",
  description: `Take an account out of an organization, whose limits no longer apply to it. ${operatorNeeds}`,
  examples: ["headrace organizations remove 'Example Group' 'Web shop'"],
  run: (call, which, account) => move(call, "DELETE", which, account),
});

export const organizationsCommand = command({
  name: "organizations",
  summary: "group accounts, and set limits for each group",
  description: `Manage organizations: groups of accounts with limits for all of them together. ${operatorNeeds}`,
  examples: [
    "headrace organizations                                       list them",
    "headrace organizations create 'Example Group' --monthly-spend 5000",
    "headrace organizations add 'Example Group' 'Web shop'",
    "headrace organizations show 'Example Group'                  limits, accounts, usage",
  ],
  commands: [...[listCommand, showCommand, createCommand, setCommand], ...[deleteCommand, addCommand, removeCommand]],
});

async function move(
  { connect, ask, request, terminal }: ServerCall<unknown>,
  method: "PUT" | "DELETE",
  which: string,
  account: string,
): Promise<Outcome> {
  const connection = await connect();
  const id = await ask((_, signal) => organizationId(connection, which, signal));
  const ofAccount = await ask((_, signal) => accountId(connection, account, signal));
  const answer = await request(`${organizationPath(id)}/accounts/${encodeURIComponent(ofAccount)}`, { method });
  const verb = method === "PUT" ? "belongs to" : "no longer belongs to";
  const show = () => {
    const { name } = understood(accountShape, answer, connection, "account");
    terminal.print(`${printable(name)} ${verb} the organization ${printable(which)}.`);
  };
  return { json: answer, show };
}

function printOrganization({ print, out }: Terminal, organization: Organization): void {
  print(`${out.bold(printable(organization.name))}\n`);
  const facts: [string, string][] = [
    ["ID", organization.id],
    ...accountAmounts.map((amount): [string, string] => [amountLabel(amount), amountOf(organization, amount)]),
    ["Quotas", quotaWords(organization.quotas) || "-"],
    ["Created", formatTime(organization.created_at)],
    ["Accounts", formatCount(organization.accounts)],
  ];
  print(formatFacts(facts, out));
}

function amountOf(organization: Organization, { wire, unit }: (typeof accountAmounts)[number]): string {
  const value = organization[wire];
  if (value === null) return "unlimited";
  return unit === "USD" ? formatUsd(value) : formatCount(value);
}

function limitsText(organization: Organization): string {
  const monthly = accountAmounts.flatMap((amount) => {
    if (organization[amount.wire] === null) return [];
    return [`${amountOf(organization, amount)}${amount.unit === "USD" ? "" : ` ${amount.unit}`} per month`];
  });
  return [...monthly, ...(organization.quotas.length > 0 ? [quotaWords(organization.quotas)] : [])].join(", ") || "-";
}
