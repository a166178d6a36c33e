// Opens the SQLite database. If a new version must change its schema, a backup is made first.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { exactMs } from "../base/clock.ts";
import { StartError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config/config.ts";
import { listBackups, newBackupPath, prune, removeDrafts } from "../storage/backup/backup-folder.ts";
import { backupDatabase } from "../storage/backup/backup-manifest.ts";
import { makeDirectory } from "../storage/files/durable-file.ts";
import { type Database, openDatabase } from "../storage/sql/database.ts";
import { type PendingSteps, pendingSteps } from "../storage/sql/schema.ts";
import { type BackupOptions, makeBackup, NoRoom } from "./backup.ts";

export interface UpgradeOptions extends Pick<BackupOptions, "freeBytes" | "version" | "nowSeconds"> {
  config: Pick<Config, "dataDir" | "backupBeforeUpgrade">;
  log: Log;
}

export const backupsName = "backups";
const keptBackups = 3;

/**
 * Opens the database and upgrades its schema. No other process may use the data directory. Rejects with a StartError.
 */
export async function openUpToDate(options: UpgradeOptions): Promise<Database> {
  const { config, log } = options;
  const file = join(config.dataDir, backupDatabase);
  const steps = await stepsOf(file);
  if (steps === undefined) return openDatabase(file);
  const { from, to } = steps;
  if (!config.backupBeforeUpgrade) log.warn("upgrade_without_backup", { schema: from, new_schema: to });
  const copy = config.backupBeforeUpgrade ? await copyBefore(options, steps) : undefined;
  try {
    const db = await openDatabase(file);
    log.info("database_upgraded", { schema: to, old_schema: from, ...(copy === undefined ? {} : { backup: copy }) });
    return db;
  } catch (error) {
    throw notUpgraded(error, steps, copy);
  }
}

/** Returns the schema changes that are pending; undefined if there are none or the database is new. */
async function stepsOf(file: string): Promise<PendingSteps | undefined> {
  if (!existsSync(file) || statSync(file).size === 0) return undefined;
  const db = new SQL({ adapter: "sqlite", filename: file, create: false });
  try {
    await db.unsafe("PRAGMA busy_timeout = 5000");
    return await pendingSteps(db, "sqlite");
  } finally {
    await db.close();
  }
}

/** A failing start may be repeated every second, so make no second backup of an unchanged database. */
async function copyBefore(options: UpgradeOptions, { from, to }: PendingSteps): Promise<string> {
  const { config, log, version, nowSeconds, freeBytes } = options;
  const { dataDir } = config;
  const folder = join(dataDir, backupsName);
  makeDirectory(folder);
  removeDrafts(folder, "upgrade", { nowSeconds, all: true });
  const source = stateOf(dataDir);
  const same = listBackups(folder, "upgrade").findLast(({ manifest }) => manifest.source === source);
  if (same) return same.path;
  const target = newBackupPath(folder, { nowSeconds, schema: to });
  log.info("upgrade_backup", { schema: from, new_schema: to, path: target });
  const startedMs = exactMs();
  try {
    const { bytes } = await makeBackup({
      ...{ dataDir, target, kind: "upgrade", version, nowSeconds, source },
      ...(freeBytes === undefined ? {} : { freeBytes }),
    });
    const seconds = Math.round(exactMs() - startedMs) / 1000;
    const wayBack = `Start the Headrace from before; where it refuses the schema, first run with it: headrace restore ${target} --data-dir ${dataDir} --replace`;
    log.info("upgrade_backup_made", { path: target, bytes, seconds, way_back: wayBack });
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    const skip =
      "Or make a backup elsewhere with `headrace backup PATH`, and start once with --no-backup-before-upgrade (HEADRACE_BACKUP_BEFORE_UPGRADE=false).";
    const why = `The database has schema ${from}, and this Headrace brings it to ${to}; before that it makes a backup. ${error.message}`;
    throw new StartError(error instanceof NoRoom ? `${why} ${skip}` : why, { cause: error });
  }
  prune(folder, "upgrade", { keep: keptBackups, made: target });
  return target;
}

/** Returns a text that changes whenever the database's files change. */
function stateOf(dataDir: string): string {
  const files = [backupDatabase, `${backupDatabase}-wal`].map((name) =>
    statSync(join(dataDir, name), { throwIfNoEntry: false }),
  );
  return files
    .filter((stats) => stats !== undefined && stats.size > 0)
    .map((stats) => `${stats?.ino} ${stats?.size} ${stats?.mtimeMs}`)
    .join(", ");
}

function notUpgraded(error: unknown, { from, to }: PendingSteps, copy: string | undefined): unknown {
  if (error instanceof StartError) return error;
  const said = error instanceof Error ? error.message : String(error);
  const where = copy === undefined ? "" : ` A backup from before is at ${copy}.`;
  return new StartError(
    `The database could not be brought from schema ${from} to ${to} (${said}). It is unchanged: the Headrace from before can be started on it.${where}`,
    { cause: error },
  );
}
