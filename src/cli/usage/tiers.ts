// `headrace tiers`: how much each tier may use, and which one is this account's.
import type { Command } from "commander";
import { z } from "zod";
import { requestJson, understood } from "../login/api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "../login/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatCount, formatUsd } from "../terminal/figures.ts";
import { formatTable, interruptible } from "../terminal/terminal.ts";

export interface TiersOptions extends ConnectionOptions {
  json?: boolean;
}

const amount = z.number().nullish();

const tier = z.object({
  name: z.string(),
  requests_per_minute: amount,
  tokens_per_minute: amount,
  monthly_tokens: amount,
  monthly_spend: amount,
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
  const count = (value: number | null | undefined) => (value == null ? "unlimited" : formatCount(value));
  const rows = raw
    .map((entry) => understood(tier, entry, connection, "list of tiers"))
    .map((one) => [
      one.name,
      one.current ? "current" : "",
      count(one.requests_per_minute),
      count(one.tokens_per_minute),
      count(one.monthly_tokens),
      one.monthly_spend == null ? "unlimited" : formatUsd(one.monthly_spend),
      one.environments.join(", ") || "-",
    ]);
  const header = ["TIER", "", "REQUESTS/MIN", "TOKENS/MIN", "TOKENS/MONTH", "SPEND/MONTH", "LIMITS APPLY TO"];
  terminal.print(formatTable(header, rows, out, [2, 3, 4, 5]));
}
