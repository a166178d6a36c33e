// `headrace tiers`: shows the limits of each tier, and the tier of this account. Operators change tiers.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { type Amount, amountLabel, amounts, amountText, byName, byWire } from "../../domain/limits/amounts.ts";
import type { GivenQuotaRule } from "../../domain/limits/quota-rules.ts";
import { priorities } from "../../domain/models/policies/priority.ts";
import { type Column, command, printRows, refuseNoChange } from "../command.ts";
import { parseAmount, parseUsd } from "../keys/key-settings.ts";
import { givenQuota, parseQuotas, quotasHelp, quotaWords } from "../keys/quota-view.ts";
import { requestWholeList, understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { orNone, parseEnvironments } from "../models/model-settings.ts";
import { formatCount, formatUsd } from "../terminal/figures.ts";
import { formatFacts, printable } from "../terminal/terminal.ts";

const tier = z.object({
  name: z.string(),
  ...byWire(amounts, () => z.number().nullish()),
  quotas: z.array(givenQuota).nullish(),
  environments: z.array(z.string()),
  priority: z.string().nullish(),
  current: z.boolean().nullish(),
  accounts: z.number().nullish(),
});
type Tier = z.infer<typeof tier>;

const amountColumns = amounts.map((amount): Column<Tier> => {
  const label = amountLabel(amount).toUpperCase().replace(" PER ", "/").replace("MINUTE", "MIN");
  return [label, (one) => shown(amount, one[amount.wire])];
});
const columns: Column<Tier>[] = [
  ["TIER", ({ name }) => name],
  ["", ({ current }) => (current ? "current" : "")],
  ...amountColumns,
  ["PRIORITY", ({ priority }) => printable(priority ?? "-")],
  ["LIMITS APPLY TO", ({ environments }) => environments.join(", ") || "-"],
];
const quotaColumn: Column<Tier> = ["QUOTAS", ({ quotas }) => quotaWords(quotas ?? []) || "-"];
const figures = amountColumns.map(([name]) => name);

const accountsColumn: Column<Tier> = ["ACCOUNTS", ({ accounts }) => formatCount(accounts)];

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the tiers and their limits (the default)",
  description: "List the tiers and their limits. Needs a key with the scope usage:read, or admin:manage with --all.",
  options: {
    all: ["-a, --all", "all tiers, with their number of accounts; for operators"],
    json: ["--json", "print the list as the API gives it"],
  },
  examples: ["headrace tiers", "headrace tiers --all", "headrace tiers --json"],
  async run({ connect, ask, options, terminal }) {
    const connection = await connect();
    const path = options.all ? "/admin/tiers" : "/tiers";
    const raw = await ask((_, signal) => requestWholeList(connection, path, "list of tiers", signal));
    const show = () => {
      const rows = raw.map((entry) => understood(tier, entry, connection, "list of tiers"));
      const isMore = rows.some(({ quotas }) => quotas?.length);
      const shownColumns = [...columns, ...(options.all ? [accountsColumn] : []), ...(isMore ? [quotaColumn] : [])];
      printRows(terminal, rows, shownColumns, [...figures, "ACCOUNTS"], ["LIMITS APPLY TO", "PRIORITY"]);
    };
    return { json: raw, show };
  },
});

const tierArgument = ["<tier>", "name of the tier"] as const;
const tierPath = (name: string) => `/admin/tiers/${encodeURIComponent(name)}`;

const setCommand = serverCommand({
  name: "set",
  summary: "create a tier, or change its limits",
  description: `Create a tier, or change it. An existing tier keeps the limits that you leave out. A new tier is unlimited where you give no limit. ${operatorNeeds}`,
  arguments: [tierArgument],
  options: {
    ...byName(amounts, (amount) => {
      const [value, parse] = amount.unit === "USD" ? (["usd", parseUsd] as const) : (["number", parseAmount] as const);
      return [
        `--${amount.wire.replaceAll("_", "-")} <${value}>`,
        `${amountText(amount)}, or none`,
        orNone(parse),
      ] as const;
    }),
    quotas: [
      "--quotas <quotas>",
      'such as "200 requests per 5h", or none',
      (text: string): GivenQuotaRule[] => (text === "none" ? [] : parseQuotas(text)),
    ],
    environments: [
      "--environments <names>",
      `environments in which the limits apply: ${environments.join(", ")}`,
      parseEnvironments,
    ],
    priority: ["--priority <priority>", "highest priority of its requests", priorities],
    json: ["--json", "print the tier as the API gives it"],
  },
  examples: [
    "headrace tiers set team --requests-per-minute 300 --monthly-spend 250",
    "headrace tiers set pro --tokens-per-minute none",
  ],
  help: [quotasHelp],
  async run({ connect, ask, request, options, terminal }, name) {
    const given = {
      ...byWire(amounts, (amount) => {
        const value = options[amount.name];
        return value === "none" ? null : value;
      }),
      quotas: options.quotas,
      environments: options.environments,
      priority: options.priority,
    };
    const changes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    refuseNoChange(changes, "--requests-per-minute 300");
    const connection = await connect();
    const tiers = await ask((_, signal) => requestWholeList(connection, "/admin/tiers", "list of tiers", signal));
    const known = tiers
      .map((raw) => understood(tier, raw, connection, "list of tiers"))
      .find((one) => one.name === name);
    // The PUT request replaces the whole tier, so the body also repeats the unchanged limits.
    const { quotas, environments: applied, priority } = known ?? {};
    const before = { ...byWire(amounts, ({ wire }) => known?.[wire] ?? null), quotas, environments: applied, priority };
    const body = { ...before, ...changes };
    const answer = await request(tierPath(name), { method: "PUT", body });
    const show = () => {
      const made = understood(tier, answer, connection, "tier");
      terminal.print(`${printable(name)} is ${known ? "changed" : "made"}.\n`);
      const facts = amounts.map((amount) => [amountLabel(amount), shown(amount, made[amount.wire])] as const);
      terminal.print(formatFacts([...facts, ["Quotas", quotaWords(made.quotas ?? []) || "-"]], terminal.out));
    };
    return { json: answer, show };
  },
});

const removeCommand = serverCommand({
  name: "remove",
  summary: "remove a tier without accounts, or the changes of a built-in one",
  description: `Remove a tier that has no accounts. A built-in tier gets its original limits. ${operatorNeeds}`,
  arguments: [tierArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace tiers remove team"],
  async run({ request, confirm, terminal }, name) {
    await confirm({ question: `Remove the tier ${name}` });
    const answer = await request(tierPath(name), { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`The tier ${printable(name)} is removed.`) };
  },
});

export const tiersCommand = command({
  name: "tiers",
  summary: "list the tiers and their limits, and change them",
  description: "List the tiers and their limits. Operators create, change and remove them.",
  examples: [
    "headrace tiers                                      those that this account may see",
    "headrace tiers --all                                all, for operators",
    "headrace tiers set team --requests-per-minute 300 --monthly-spend 250",
    "headrace tiers remove team",
  ],
  commands: [listCommand, setCommand, removeCommand],
});

function shown({ unit }: Amount, value: number | null | undefined): string {
  if (value == null) return "unlimited";
  return unit === "USD" ? formatUsd(value) : formatCount(value);
}
