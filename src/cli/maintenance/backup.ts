// `headrace backup`: copies the records, and usage that is not yet in the database. Works with or without a running
// server.
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import packageJson from "../../../package.json" with { type: "json" };
import { loadDatabaseUrl, loadSecretsHex } from "../../config/config.ts";
import type { KeyRing } from "../../domain/key-ring.ts";
import { formatBytes } from "../../engines/llama/byte-size.ts";
import { type Backup, makeBackup } from "../../maintenance/backup.ts";
import { backupsName } from "../../maintenance/upgrade.ts";
import { newBackupPath, prune, removeDrafts } from "../../storage/backup/backup-folder.ts";
import { findManifest } from "../../storage/backup/backup-manifest.ts";
import { makeDirectory } from "../../storage/files/durable-file.ts";
import { loadSecrets, secretFile } from "../../storage/files/secret-file.ts";
import { command, dataDirOption, type OptionValues } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { type Progress, startProgress } from "../terminal/progress.ts";
import { CliError, exitCodes, formatDuration, interruptible } from "../terminal/terminal.ts";
import { countsText } from "./backup-view.ts";

const backupOptions = {
  ...dataDirOption,
  keep: ["--keep <number>", "then keep only this many of the newest dated backups in the folder", parseKeep],
  includeSecret: ["--include-secret", "include the secret; the backup alone then decrypts every value in it"],
  force: ["--force", "replace an existing backup at PATH"],
  quiet: ["-q, --quiet", "print only the path"],
  json: ["--json", "print one JSON object: path, bytes, seconds, manifest, deleted"],
} as const;
type BackupFlags = OptionValues<typeof backupOptions>;

export const backupCommand = command({
  name: "backup",
  summary: "copy the records, while the server runs",
  description:
    "Make a consistent copy of the records in the data directory, while the server runs or without one. Where PATH is a folder, it is made in there and named by the time; else it becomes PATH.",
  arguments: [["[path]", ""]],
  options: backupOptions,
  examples: [
    "headrace backup                                 into the folder backups of the data directory",
    "headrace backup /mnt/backups --keep 14 --quiet  for cron; the folder is made where it is missing",
    "headrace backup ./before-the-move",
  ],
  help: [
    `In it: the database, and the usage that is on its way there. Not in it: the secret,
unless asked for (HEADRACE_SECRET, or the file \`secret\` of the data directory: without it
every key is refused after a restore), headrace.yaml, credentials.json, models.
Everybody who can read a backup can read stored chats and usage. headrace restore
puts it back.`,
  ],
  run: ({ context, options }, path) => backup(context, path, options),
});

async function backup(context: CliContext, path: string | undefined, flags: BackupFlags): Promise<void> {
  const { terminal } = context;
  await requireEmbedded(context);
  const dataDir = await context.dataDir(flags.dataDir);
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const { folder, target } = destinationOf(dataDir, path, flags, nowSeconds);
  const secrets = flags.includeSecret ? await secretsOf(context, dataDir) : undefined;
  const startedMs = performance.now();
  let progress: Progress | undefined;
  const isShown = !flags.json && !flags.quiet;
  let made: Backup;
  try {
    made = await interruptible((signal) =>
      makeBackup({
        ...{ dataDir, target, kind: "backup", version: packageJson.version, nowSeconds, secrets, signal },
        force: flags.force ?? false,
        onProgress(state) {
          if (!isShown) return;
          if (state.phase === "checking") {
            progress?.stop(true);
            if (terminal.interactive) terminal.note("Copied; checking the copy.");
            return;
          }
          progress ??= startProgress(terminal, { totalBytes: state.totalBytes });
          progress.update(state.bytes);
        },
      }),
    );
  } finally {
    progress?.stop(true);
  }
  const deleted =
    folder !== undefined && flags.keep !== undefined
      ? prune(folder, "backup", { keep: flags.keep, made: made.path })
      : [];
  if (folder !== undefined) removeDrafts(folder, "backup", { nowSeconds, all: false });
  const seconds = (performance.now() - startedMs) / 1000;
  if (flags.json) {
    const { bytes, manifest } = made;
    terminal.print(
      JSON.stringify({ path: made.path, bytes, seconds: rounded(seconds), manifest, deleted }, undefined, 2),
    );
  } else if (flags.quiet) terminal.print(made.path);
  else show(context, made, { seconds, deleted, hasSecret: secrets !== undefined });
}

async function requireEmbedded({ env }: CliContext): Promise<void> {
  if ((await loadDatabaseUrl(env)) === undefined) return;
  throw new CliError(
    "The records are in PostgreSQL (HEADRACE_DATABASE_URL): back them up with pg_dump --format=custom, or with the means of that server. Of each data directory the folder `spool` matters: it holds the last usage that PostgreSQL does not have yet; copy it before the dump begins. Keep HEADRACE_SECRET and headrace.yaml, too. See docs/backup.md.",
  );
}

interface Destination {
  /** The folder for backups; undefined if the person named a file. */
  folder: string | undefined;
  target: string;
}

function destinationOf(
  dataDir: string,
  path: string | undefined,
  { keep }: BackupFlags,
  nowSeconds: number,
): Destination {
  const named = path === undefined ? join(dataDir, backupsName) : resolve(path);
  const isFolder = path === undefined || keep !== undefined || path.endsWith("/");
  if (isFolder && existsSync(dataDir)) makeDirectory(named);
  if (existsSync(named) && !statSync(named).isDirectory()) {
    throw new CliError(
      `${named} is a file. Name a folder in which the backup is made, or a new path.`,
      exitCodes.usage,
    );
  }
  const isBackup = findManifest(named) !== undefined;
  if (isBackup && keep !== undefined) {
    throw new CliError(`${named} is a backup itself. With --keep, name the folder around it.`, exitCodes.usage);
  }
  if (existsSync(named) && !isBackup) return { folder: named, target: newBackupPath(named, { nowSeconds }) };
  return { folder: undefined, target: named };
}

async function secretsOf({ env }: CliContext, dataDir: string): Promise<KeyRing> {
  const given = await loadSecretsHex(env);
  // Reads the secret only if it exists, because a backup never creates one.
  if (given !== undefined || existsSync(secretFile(dataDir))) return loadSecrets(dataDir, given);
  throw new CliError(
    `There is no file ${secretFile(dataDir)} to include: set HEADRACE_SECRET to what the server is started with, or leave out --include-secret and keep it elsewhere.`,
  );
}

interface Outcome {
  seconds: number;
  deleted: readonly string[];
  hasSecret: boolean;
}

function show(
  { terminal }: CliContext,
  { path, bytes, manifest }: Backup,
  { seconds, deleted, hasSecret }: Outcome,
): void {
  terminal.print(`${path}`);
  terminal.note(
    `Backed up and checked: ${countsText(manifest.counts)}; ${formatBytes(bytes)} in ${seconds < 10 ? `${Math.max(0.1, seconds).toFixed(1)} s` : formatDuration(seconds)}.`,
  );
  for (const old of deleted) terminal.note(`Deleted: ${old}`);
  terminal.note(
    hasSecret
      ? terminal.err.yellow(
          "It contains the secret: anyone who has this backup can decrypt every value in it. Keep it as safe as the server.",
        )
      : "The secret is not in it (HEADRACE_SECRET, or the file `secret`): keep that elsewhere. Without it every key is refused after a restore.",
  );
}

function parseKeep(text: string): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (number >= 1) return number;
  throw new InvalidArgumentError("It must be a whole number, 1 or more.");
}

function rounded(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
