// Replaces existing files by restored ones, in steps that an interrupted restore, or the next start, continues.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { syncEntry } from "./backup-folder.ts";
import { backupDatabase, backupSecret, backupSpool } from "./backup-manifest.ts";

/**
 * The name of a folder with verified and synced files. While it exists, its files have to be moved into the data
 * directory.
 */
const restoring = "restoring";
const planName = "restore.json";
/** The file that identifies the data directory's database. */
export const installationName = "installation";
/** Files of the old database, which would damage a different database beside them. */
const journals = [`${backupDatabase}-wal`, `${backupDatabase}-shm`];

const planShape = z.object({ aside: z.string().regex(/^replaced-[\w-]+$/) });

/** Returns existing names that a restore would replace. */
export function whatIsThere(dataDir: string, names: readonly string[]): string[] {
  return names.filter((name) => existsSync(join(dataDir, name)));
}

/**
 * Begins the restore. If it is interrupted from here on, the next start completes it. `draft`: a folder in the data
 * directory; `aside`: the name of a folder for the replaced files.
 */
export async function beginRestore(dataDir: string, draft: string, aside: string): Promise<void> {
  writeFileSync(join(draft, planName), JSON.stringify({ aside }), { mode: 0o600 });
  await syncEntry(join(draft, planName));
  await syncEntry(draft);
  renameSync(draft, join(dataDir, restoring));
  await syncEntry(dataDir);
}

/**
 * Completes a begun restore. No other process may use the data directory. Returns the path of the replaced files, or
 * undefined if no restore was begun.
 */
export async function finishRestore(dataDir: string): Promise<string | undefined> {
  const from = join(dataDir, restoring);
  if (!existsSync(from)) return undefined;
  // The folder contains its plan from the start. If the plan is missing, an earlier attempt had moved all files, and
  // only the rest of the folder has to be deleted.
  if (!existsSync(join(from, planName))) {
    rmSync(from, { recursive: true });
    return undefined;
  }
  const { aside } = planShape.parse(JSON.parse(readFileSync(join(from, planName), "utf8")));
  const old = join(dataDir, aside);
  const moveAside = (name: string) => {
    if (!existsSync(join(dataDir, name))) return;
    mkdirSync(old, { recursive: true, mode: 0o700 });
    // If the name is taken, an earlier attempt already moved the original file. This file was created after that
    // attempt was interrupted.
    renameSync(join(dataDir, name), join(old, existsSync(join(old, name)) ? `${name}-${crypto.randomUUID()}` : name));
  };
  // The database is moved last. While it is still in the folder, journals in the data directory belong to the old
  // database.
  if (existsSync(join(from, backupDatabase))) for (const name of journals) moveAside(name);
  for (const name of [backupSecret, backupSpool, backupDatabase]) {
    if (!existsSync(join(from, name))) continue;
    moveAside(name);
    renameSync(join(from, name), join(dataDir, name));
  }
  // Without this file, the next start accepts a database of another installation, which a backup may be.
  rmSync(join(dataDir, installationName), { force: true });
  if (existsSync(old)) await syncEntry(old);
  await syncEntry(dataDir);
  rmSync(from, { recursive: true });
  return old;
}
