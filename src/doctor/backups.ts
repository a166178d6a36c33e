// Checks the age of the newest backup in the data directory.
import { join } from "node:path";
import { backupsName } from "../maintenance/upgrade.ts";
import { listBackups } from "../storage/backup/backup-folder.ts";
import { type Check, type Finding, ok, skipped, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

const daySeconds = 86_400;
const oldDays = 8;

/**
 * Returns the checks for backups of SQLite. Backups of PostgreSQL are made with its own tools, so there is no check.
 */
export function backupChecks({ dataDir, databaseUrl }: Subject): Check[] {
  if (dataDir === undefined || databaseUrl !== undefined) return [];
  return [{ name: "backup", run: () => newest(join(dataDir, backupsName)) }];
}

function newest(folder: string): Finding {
  const last = listBackups(folder, "backup").at(-1);
  if (!last) return skipped("backup", `none in ${folder}; those elsewhere are not known here`);
  const days = Math.floor((Date.now() / 1000 - last.manifest.created_at) / daySeconds);
  const found = days < 1 ? "made within the last day" : `${days} day${days === 1 ? "" : "s"} old`;
  if (days < oldDays) return ok("backup", found);
  return warning("backup", `the newest in ${folder} is ${found}`, "headrace backup, each night by cron: --keep 14.");
}
