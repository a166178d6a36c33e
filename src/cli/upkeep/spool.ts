// `headrace spool drain`: brings the usage that a lost server had not written yet into the database.
import { resolve } from "node:path";
import type { Command } from "commander";
import { loadDatabaseUrl, loadRedisUrl } from "../../config/config.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatCount } from "../terminal/figures.ts";

interface SpoolFlags {
  dataDir?: string;
  json?: boolean;
}

export function registerSpool(program: Command, context: CliContext): void {
  program
    .command("spool")
    .summary("bring usage of a lost server into the database")
    .description("Work on the files in which a server keeps the usage that is not in the database yet.")
    .command("drain <directory>")
    .description(
      "Bring the spool of a server that never returns into the database. The directory is its data directory, or the directory `spool` of it.",
    )
    .option("--data-dir <path>", "where headrace.db is, without HEADRACE_DATABASE_URL (default: as headrace serve)")
    .option("--json", "print one JSON object: spool, settled, interrupted, damaged, too_old")
    .addHelpText(
      "after",
      `
Examples:
  HEADRACE_DATABASE_URL=postgres://… headrace spool drain /mnt/lost/headrace
  headrace spool drain ./copy-of-the-spool --data-dir /var/lib/headrace

A server that starts again on its data directory does this by itself. Done twice,
nothing is counted twice; what is in the database is deleted from the directory.`,
    )
    .action((directory: string, flags: SpoolFlags) => drain(context, directory, flags));
}

async function drain(context: CliContext, directory: string, flags: SpoolFlags): Promise<void> {
  context.begin();
  const { terminal } = context;
  // Only here: a server that runs for months holds nothing of it in memory.
  const { drainSpool } = await import("../../upkeep/spool-drain.ts");
  const { spool, settled, interrupted, damaged, tooOld } = await drainSpool({
    directory: resolve(directory),
    dataDir: await context.dataDir(flags.dataDir),
    databaseUrl: loadDatabaseUrl(context.env),
    redisUrl: loadRedisUrl(context.env),
    log: { info() {}, warn() {}, error() {} },
  });
  if (damaged > 0) {
    terminal.note(
      `${formatCount(damaged)} lines could not be read, as of a write that was cut off. They are left out.`,
    );
  }
  if (tooOld > 0) {
    terminal.note(
      `${formatCount(tooOld)} requests are older than requests are kept (retention.requests_days), so nobody can tell whether they were counted. They are left out.`,
    );
  }
  if (flags.json) {
    terminal.print(JSON.stringify({ spool, settled, interrupted, damaged, too_old: tooOld }, undefined, 2));
    return;
  }
  const all = settled + interrupted;
  if (all === 0) return terminal.print(`There was nothing in ${spool} that the database did not have.`);
  const cut = interrupted > 0 ? `, ${formatCount(interrupted)} of them cut off` : "";
  terminal.print(`The usage of ${formatCount(all)} requests was taken over from ${spool}${cut}.`);
}
