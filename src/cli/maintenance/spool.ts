// `headrace spool drain`: writes usage from the spool of a lost server into the database.
import { resolve } from "node:path";
import { loadDatabaseUrl, loadRedisUrl } from "../../config/config.ts";
import { command } from "../command.ts";
import { formatCount } from "../terminal/figures.ts";

const drainCommand = command({
  name: "drain",
  description:
    "Bring the spool of a server that never returns into the database. The directory is its data directory, or the directory `spool` of it.",
  arguments: [["<directory>", ""]],
  options: {
    dataDir: ["--data-dir <path>", "where headrace.db is, without HEADRACE_DATABASE_URL (default: as headrace serve)"],
    json: ["--json", "print one JSON object: spool, settled, interrupted, damaged, unknown, too_old"],
  },
  examples: [
    "HEADRACE_DATABASE_URL=postgres://… headrace spool drain /mnt/lost/headrace",
    "headrace spool drain ./copy-of-the-spool --data-dir /var/lib/headrace",
  ],
  help: [
    `A server that starts again on its data directory does this by itself. Done twice,
nothing is counted twice; what is in the database is deleted from the directory.`,
  ],
  async run({ context, options, terminal }, directory) {
    // Loaded only here, so that a long-running server does not keep the code in memory.
    const { drainSpool } = await import("../../maintenance/spool-drain.ts");
    const { spool, settled, interrupted, damaged, unknown, tooOld } = await drainSpool({
      directory: resolve(directory),
      dataDir: await context.dataDir(options.dataDir),
      databaseUrl: await loadDatabaseUrl(context.env),
      redisUrl: await loadRedisUrl(context.env),
      log: { info() {}, warn() {}, error() {} },
    });
    if (damaged > 0) {
      terminal.note(
        `${formatCount(damaged)} lines could not be read, as of a write that was cut off. They are left out.`,
      );
    }
    if (unknown > 0) {
      terminal.note(
        `${formatCount(unknown)} lines are of a newer Headrace. All files are kept: drain them with that one.`,
      );
    }
    if (tooOld > 0) {
      terminal.note(
        `${formatCount(tooOld)} requests are older than requests are kept (retention.requests_days), so it is unknown whether they were counted. They are left out.`,
      );
    }
    const show = () => {
      const all = settled + interrupted;
      if (all === 0) return terminal.print(`There was nothing in ${spool} that the database did not have.`);
      const cut = interrupted > 0 ? `, ${formatCount(interrupted)} of them cut off` : "";
      terminal.print(`The usage of ${formatCount(all)} requests was taken over from ${spool}${cut}.`);
    };
    return { json: { spool, settled, interrupted, damaged, unknown, too_old: tooOld }, show };
  },
});

export const spoolCommand = command({
  name: "spool",
  summary: "recover the usage records of a lost server",
  description: "Manage the spool: files with usage records that are not in the database yet.",
  commands: [drainCommand],
});
