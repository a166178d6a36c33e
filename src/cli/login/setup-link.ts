// `headrace setup-link`: makes the link with which whoever has the data directory creates an operator's sign-in.
import type { Command } from "commander";
import { loadDatabaseUrl } from "../../config/config.ts";
import { makeSetupLink } from "../../upkeep/setup-link.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { givenBaseUrl } from "./client.ts";

interface SetupLinkFlags {
  baseUrl?: string;
  dataDir?: string;
  json?: boolean;
  quiet?: boolean;
}

export function registerSetupLink(program: Command, context: CliContext): void {
  program
    .command("setup-link")
    .summary("make a link that creates an operator's sign-in")
    .description(
      "Make a link in the data directory's database that creates a sign-in which may operate this installation. It works once, for 24 hours; those made before end.",
    )
    .option("--base-url <url>", "where browsers reach the server (default: as in credentials.json)")
    .option("--data-dir <path>", "data directory (default: as headrace serve)")
    .option("-q, --quiet", "print the link and nothing else")
    .option("--json", "print one JSON object: url, expires_at")
    .addHelpText(
      "after",
      `
Examples:
  headrace setup-link
  headrace setup-link --data-dir /var/lib/headrace
  headrace setup-link --base-url https://ai.example.com/v1

The link is printed once, alone on standard output; everything else goes to
standard error. A server that runs accepts it at once. It also lets a person back
in who has lost the password: with the same address, it becomes theirs again.`,
    )
    .action((flags: SetupLinkFlags) => setupLink(context, flags));
}

async function setupLink(context: CliContext, flags: SetupLinkFlags): Promise<void> {
  context.begin();
  const { terminal } = context;
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const { url, expiresAt } = await makeSetupLink({
    dataDir: await context.dataDir(flags.dataDir),
    databaseUrl: loadDatabaseUrl(context.env),
    baseUrl: givenBaseUrl(flags, {}),
    nowSeconds,
  });
  if (flags.json) {
    terminal.print(JSON.stringify({ url, expires_at: expiresAt }, undefined, 2));
    return;
  }
  if (!flags.quiet) terminal.note("Whoever opens this link first becomes an operator of the installation:");
  terminal.print(terminal.out.bold(url));
  if (flags.quiet) return;
  const until = formatTimeAndRelative(expiresAt, nowSeconds);
  terminal.note(terminal.err.dim(`It works once, until ${until}. It is shown only now, and ends those made before.`));
}
