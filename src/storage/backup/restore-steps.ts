// Replaces existing files by restored ones, in steps that an interrupted restore, or the next start, continues.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { syncEntry } from "./backup-folder.ts";
import { backupDatabase, backupSecret, backupSpool } from "./backup-manifest.ts";

/** If this folder exists, its content belongs into the data directory: all of it was verified and synced. */
const restoring = "restoring";
const planName = "restore.json";
/** The file that identifies the data directory's database. */
export const installationName = "installation";
/** Files that belong to the old database, and would damage a different database beside them. */
const journals = [`${backupDatabase}-wal`, `${backupDatabase}-shm`];

const planShape = z.object({ aside: z.string().regex(/^replaced-[\w-]+$/) });

/** Returns existing names that a restore would replace. */
export function whatIsThere(dataDir: string, names: readonly string[]): string[] {
  return names.filter((name) => existsSync(join(dataDir, name)));
}

/**
 * Begins the restore, which will be completed in any case. `draft`: a folder in the data directory; `aside`: a name for
 * the replaced files.
 */
export async function beginRestore(dataDir: string, draft: string, aside: string): Promise<void> {
  writeFileSync(join(draft, planName), JSON.stringify({ aside }), { mode: 0o600 });
  await syncEntry(join(draft, planName));
  await syncEntry(draft);
  renameSync(draft, join(dataDir, restoring));
  await syncEntry(dataDir);
}

/**
 * Requires that no process uses the data directory. Returns the path of the replaced files. Undefined if no restore was
 * begun.
 */
export async function finishRestore(dataDir: string): Promise<string | undefined> {
  const from = join(dataDir, restoring);
  if (!existsSync(from)) return undefined;
  // The plan exists before the other files. Without it, only the deletion of the folder is left to do.
  if (!existsSync(join(from, planName))) {
    rmSync(from, { recursive: true });
    return undefined;
  }
  const { aside } = planShape.parse(JSON.parse(readFileSync(join(from, planName), "utf8")));
  const old = join(dataDir, aside);
  const moveAside = (name: string) => {
    if (!existsSync(join(dataDir, name))) return;
    mkdirSync(old, { recursive: true, mode: 0o700 });
    // A file may have been created after an interruption: the first one is what was replaced.
    renameSync(join(dataDir, name), join(old, existsSync(join(old, name)) ? `${name}-${crypto.randomUUID()}` : name));
  };
  // The database comes last: while it is here, journals in the data directory belong to the old one.
  if (existsSync(join(from, backupDatabase))) for (const name of journals) moveAside(name);
  for (const name of [backupSecret, backupSpool, backupDatabase]) {
    if (!existsSync(join(from, name))) continue;
    moveAside(name);
    renameSync(join(from, name), join(dataDir, name));
  }
  // The next start accepts the database as it is, because a backup may be of another installation.
  rmSync(join(dataDir, installationName), { force: true });
  if (existsSync(old)) await syncEntry(old);
  await syncEntry(dataDir);
  rmSync(from, { recursive: true });
  return old;
}
