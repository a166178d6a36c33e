// Puts restored files in the place of those that are there, in steps that a cut-off restore, or the next start, goes on with.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { syncEntry } from "./backup-folder.ts";
import { backupDatabase, backupSecret, backupSpool } from "./backup-manifest.ts";

/** While it is there, what is in it belongs into the data directory: all of it was verified and is on the disk. */
const restoring = "restoring";
const planName = "restore.json";
/** Says which database the data directory is used with. */
export const installationName = "installation";
/** Files of the old database: beside another one they would damage it. */
const journals = [`${backupDatabase}-wal`, `${backupDatabase}-shm`];

const planShape = z.object({ aside: z.string().regex(/^replaced-[\w-]+$/) });

/** Names of those that are there, which a restore would replace. */
export function whatIsThere(dataDir: string, names: readonly string[]): string[] {
  return names.filter((name) => existsSync(join(dataDir, name)));
}

/** From here on the restore goes on, whatever happens. `draft`: a folder in the data directory; `aside`: a name for what was there. */
export async function beginRestore(dataDir: string, draft: string, aside: string): Promise<void> {
  writeFileSync(join(draft, planName), JSON.stringify({ aside }), { mode: 0o600 });
  await syncEntry(join(draft, planName));
  await syncEntry(draft);
  renameSync(draft, join(dataDir, restoring));
  await syncEntry(dataDir);
}

/** Nobody uses the data directory. Gives where what was there is now, a path; undefined where no restore was begun. */
export async function finishRestore(dataDir: string): Promise<string | undefined> {
  const from = join(dataDir, restoring);
  if (!existsSync(from)) return undefined;
  // It is there before the rest is: without it all was done, but for deleting the folder.
  if (!existsSync(join(from, planName))) {
    rmSync(from, { recursive: true });
    return undefined;
  }
  const { aside } = planShape.parse(JSON.parse(readFileSync(join(from, planName), "utf8")));
  const old = join(dataDir, aside);
  const moveAside = (name: string) => {
    if (!existsSync(join(dataDir, name))) return;
    mkdirSync(old, { recursive: true, mode: 0o700 });
    // Somebody may have made one since this was cut off: the first is what was replaced.
    renameSync(join(dataDir, name), join(old, existsSync(join(old, name)) ? `${name}-${crypto.randomUUID()}` : name));
  };
  // The database comes last: as long as it is here, journals in the data directory are those of the old one.
  if (existsSync(join(from, backupDatabase))) for (const name of journals) moveAside(name);
  for (const name of [backupSecret, backupSpool, backupDatabase]) {
    if (!existsSync(join(from, name))) continue;
    moveAside(name);
    renameSync(join(from, name), join(dataDir, name));
  }
  // The next start takes the database as it is: a backup may be of another installation.
  rmSync(join(dataDir, installationName), { force: true });
  if (existsSync(old)) await syncEntry(old);
  await syncEntry(dataDir);
  rmSync(from, { recursive: true });
  return old;
}
