// `headrace tiers`: how much each tier may use, and which one is this account's.
import type { Command } from "commander";
import { z } from "zod";
import { type Amount, amountLabel, amounts, byWire } from "../../domain/limits/amounts.ts";
import { requestJson, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatCount, formatUsd } from "../terminal/figures.ts";
import { formatTable, interruptible } from "../terminal/terminal.ts";

export interface TiersOptions extends ConnectionOptions {
  json?: boolean;
}

const tier = z.object({
  name: z.string(),
  ...byWire(amounts, () => z.number().nullish()),
  environments: z.array(z.string()),
  current: z.boolean(),
});

// Unchecked entries: --json passes on what this version does not know.
const tierList = z.object({ data: z.array(z.unknown()) });

export function registerTiers(program: Command, context: CliContext): void {
  const command = program
    .command("tiers")
    .summary("list the tiers and their limits")
    .description("List the tiers and their limits. Needs a key with the scope usage:read.");
  addConnectionOptions(command.option("--json", "print the list as the API gives it"))
    .addHelpText("after", `\nExamples:\n  headrace tiers\n  headrace tiers --json\n${connectionHelp}`)
    .action((options: TiersOptions) => listTiers(context, options));
}

function shown({ unit }: Amount, value: number | null | undefined): string {
  if (value == null) return "unlimited";
  return unit === "USD" ? formatUsd(value) : formatCount(value);
}

async function listTiers(context: CliContext, options: TiersOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const answer = await interruptible((signal) => requestJson(connection, "/tiers", signal));
  const raw = understood(tierList, answer, connection, "list of tiers").data;
  if (options.json) {
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  const { out } = terminal;
  const rows = raw
    .map((entry) => understood(tier, entry, connection, "list of tiers"))
    .map((one) => [
      one.name,
      one.current ? "current" : "",
      ...amounts.map((amount) => shown(amount, one[amount.wire])),
      one.environments.join(", ") || "-",
    ]);
  const heads = amounts.map((amount) =>
    amountLabel(amount).toUpperCase().replace(" PER ", "/").replace("MINUTE", "MIN"),
  );
  const header = ["TIER", "", ...heads, "LIMITS APPLY TO"];
  const figures = heads.map((_, i) => i + 2);
  terminal.print(formatTable(header, rows, out, figures));
}
