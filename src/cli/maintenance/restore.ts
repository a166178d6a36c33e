// `headrace restore`: replaces a data directory's records with a backup, and explains the consequences.
import { join, resolve } from "node:path";
import { loadDatabaseUrl, loadSecretsHex } from "../../config/config.ts";
import { formatBytes } from "../../engines/llama/byte-size.ts";
import type { Restored } from "../../maintenance/restore.ts";
import { type BackupManifest, bytesOf } from "../../storage/backup/backup-manifest.ts";
import { loadSecrets } from "../../storage/files/secret-file.ts";
import { command, dataDirOption, type OptionValues } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { type Progress, startProgress } from "../terminal/progress.ts";
import { CliError, interruptible, printable, type Terminal } from "../terminal/terminal.ts";
import { countsText } from "./backup-view.ts";

/** Maximum number of credentials shown; `--json` lists all. */
const shownCredentials = 20;

const restoreOptions = {
  ...dataDirOption,
  replace: ["--replace", "move the current records aside; nothing is deleted"],
  json: ["--json", "print one JSON object: data_dir, replaced, secret, valid_again, manifest"],
} as const;

export const restoreCommand = command({
  name: "restore",
  summary: "restore a backup",
  description: "Restore a backup into a data directory. Stop the server first.",
  arguments: [["<path>", ""]],
  options: restoreOptions,
  examples: [
    "headrace restore /mnt/backups/headrace-20261121T030000Z",
    "headrace restore ./backups/before-schema-9-20261121T101500Z --replace",
  ],
  help: [
    `All records are as they were at the backup. Keys, sessions and app grants that ended since
then are VALID AGAIN, suspensions since then are lifted, and usage since then counts against no quota. The secret must be that
of the backup: HEADRACE_SECRET, or the file \`secret\` of the data directory.`,
  ],
  run: ({ context, options }, path) => restore(context, path, options),
});

async function restore(context: CliContext, path: string, flags: OptionValues<typeof restoreOptions>): Promise<void> {
  const { terminal } = context;
  if ((await loadDatabaseUrl(context.env)) !== undefined) {
    throw new CliError(
      "HEADRACE_DATABASE_URL is set: the server would not use what is restored here. Restore PostgreSQL with pg_restore, or unset the variable.",
    );
  }
  const dataDir = await context.dataDir(flags.dataDir);
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const secretsHex = await loadSecretsHex(context.env);
  let progress: Progress | undefined;
  // Loaded only here, so that a long-running server does not keep the code in memory.
  const { restoreBackup } = await import("../../maintenance/restore.ts");
  let restored: Restored;
  try {
    restored = await interruptible((signal) =>
      restoreBackup({
        ...{ backup: resolve(path), dataDir, replace: flags.replace ?? false, nowSeconds, signal },
        secrets: secretsHex === undefined ? undefined : loadSecrets(dataDir, secretsHex),
        onBegin(manifest) {
          if (flags.json) return;
          terminal.note(announcement(manifest, dataDir, nowSeconds));
          progress = startProgress(terminal, { totalBytes: bytesOf(manifest) });
        },
        onProgress: (bytes) => progress?.update(bytes),
      }),
    );
  } finally {
    progress?.stop(true);
  }
  if (flags.json) terminal.print(JSON.stringify(wireOf(restored, dataDir), undefined, 2));
  else show(terminal, restored, dataDir);
}

function announcement(manifest: BackupManifest, dataDir: string, nowSeconds: number): string {
  const { counts, created_at, headrace, schema } = manifest;
  const time = formatTimeAndRelative(created_at, nowSeconds);
  return `Restoring ${countsText(counts)} (${formatBytes(bytesOf(manifest))}) as of ${time} into ${dataDir}; made by Headrace ${printable(headrace)}, schema ${schema}.`;
}

function wireOf({ manifest, replaced, secret, validAgain }: Restored, dataDir: string) {
  return { data_dir: dataDir, replaced: replaced ?? null, secret, valid_again: validAgain ?? null, manifest };
}

function show(terminal: Terminal, { replaced, secret, validAgain }: Restored, dataDir: string): void {
  const { bold, yellow } = terminal.err;
  terminal.print(`Restored into ${dataDir}.`);
  if (replaced !== undefined) {
    terminal.note(
      `The earlier records are in ${replaced}. To recover usage that had not reached the database: headrace spool drain ${join(replaced, "spool")}`,
    );
  }
  terminal.note(
    yellow(
      bold(
        "What was revoked or suspended since the backup is VALID AGAIN: keys, logins, app grants, people, accounts.",
      ),
    ),
  );
  showCredentials(terminal, validAgain);
  terminal.note(
    "Keys, people and settings made since the backup are gone; credentials.json may hold such a key. Usage since then counts against no quota, and rate limits start at zero.",
  );
  if (secret === "unknown") {
    terminal.note(
      yellow(
        "The secret could not be checked. The server starts only with the secret of the backup. Before the start, set HEADRACE_SECRET to that secret, or put the file `secret` into the data directory.",
      ),
    );
  }
  terminal.note(
    "Start the server. It adds the usage that was not yet in the database when the backup was made. It also continues what the server of the backup had begun: notifications, batches, background responses and connections to MCP servers. If that server still runs, check this copy with headrace doctor and do not start it.",
  );
}

function showCredentials(terminal: Terminal, validAgain: Restored["validAgain"]): void {
  if (validAgain === undefined) {
    terminal.note(
      "It is unknown which ones. Revoke or suspend them again from your own notes, with headrace keys revoke and suspend.",
    );
    return;
  }
  if (validAgain.length === 0) {
    terminal.note("The earlier records show none.");
    return;
  }
  terminal.note(
    "The earlier records show these. Revoke or suspend each again, with headrace keys, people, accounts or apps:",
  );
  for (const { id, kind, name, state } of validAgain.slice(0, shownCredentials)) {
    terminal.note(`  ${printable(id)}  ${printable(kind)}  ${printable(name)}  ${state}`);
  }
  const more = validAgain.length - shownCredentials;
  if (more > 0) terminal.note(`  and ${more} more: --json lists all`);
}
