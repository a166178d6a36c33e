// `headrace tiers`: shows the limits of each tier, and the tier of this account.
import { z } from "zod";
import { type Amount, amountLabel, amounts, byWire } from "../../domain/limits/amounts.ts";
import { type Column, printRows } from "../command.ts";
import { givenQuota, quotaWords } from "../keys/quota-view.ts";
import { requestWholeList, understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatCount, formatUsd } from "../terminal/figures.ts";
import { printable } from "../terminal/terminal.ts";

const tier = z.object({
  name: z.string(),
  ...byWire(amounts, () => z.number().nullish()),
  quotas: z.array(givenQuota).nullish(),
  environments: z.array(z.string()),
  priority: z.string().nullish(),
  current: z.boolean(),
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

export const tiersCommand = serverCommand({
  name: "tiers",
  summary: "list the tiers and their limits",
  description: "List the tiers and their limits. Needs a key with the scope usage:read.",
  options: { json: ["--json", "print the list as the API gives it"] },
  examples: ["headrace tiers", "headrace tiers --json"],
  async run({ connect, ask, terminal }) {
    const connection = await connect();
    const raw = await ask((_, signal) => requestWholeList(connection, "/tiers", "list of tiers", signal));
    const read = (entry: unknown) => understood(tier, entry, connection, "list of tiers");
    const show = () => {
      const rows = raw.map(read);
      const isMore = rows.some(({ quotas }) => quotas?.length);
      printRows(terminal, rows, isMore ? [...columns, quotaColumn] : columns, figures);
    };
    return { json: raw, show };
  },
});

function shown({ unit }: Amount, value: number | null | undefined): string {
  if (value == null) return "unlimited";
  return unit === "USD" ? formatUsd(value) : formatCount(value);
}
