// The folder of backups: names, old backups, and leftovers of interrupted ones.
import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BackupManifest, findManifest } from "./backup-manifest.ts";

const kinds = { backup: "headrace", upgrade: "before-schema" } as const;
type Kind = BackupManifest["kind"];

const namePattern = /^(headrace|before-schema-\d+)-\d{8}T\d{6}Z(-\d+)?$/;
const draftPattern = /^\.(headrace|before-schema)-\d+-[0-9a-f]{8}\.draft$/;
/** A draft without a write for this long belongs to a dead process. */
const draftSeconds = 24 * 3600;

/**
 * Returns a path for a new backup, named by the time. `schema` is the target version of the migration for which the
 * backup is made, if any.
 */
export function newBackupPath(folder: string, { nowSeconds, schema }: { nowSeconds: number; schema?: number }): string {
  return newPath(folder, schema === undefined ? kinds.backup : `${kinds.upgrade}-${schema}`, nowSeconds);
}

/** Returns a path such as `start-20261121T101500Z`, with a number appended if that path exists. */
export function newPath(folder: string, start: string, nowSeconds: number): string {
  const time = new Date(nowSeconds * 1000).toISOString().replace(/[-:]|\.\d+/g, "");
  const path = join(folder, `${start}-${time}`);
  let free = path;
  for (let count = 2; existsSync(free); count++) free = `${path}-${count}`;
  return free;
}

/** Returns a path for a draft in the same folder as the target, so that a rename completes the target. */
export function draftPath(target: string, kind: Kind): string {
  const random = crypto.randomUUID().slice(0, 8);
  return join(dirname(target), `.${kinds[kind]}-${process.pid}-${random}.draft`);
}

/** Lists complete backups with generated names, oldest first. */
export function listBackups(folder: string, kind: Kind): { path: string; manifest: BackupManifest }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => namePattern.test(name) && name.startsWith(kinds[kind]))
    .flatMap((name) => {
      const manifest = findManifest(join(folder, name));
      return manifest?.kind === kind ? [{ path: join(folder, name), manifest }] : [];
    })
    .sort(
      (a, b) => a.manifest.created_at - b.manifest.created_at || a.path.localeCompare(b.path, "en", { numeric: true }),
    );
}

/**
 * Deletes backups until `keep` of them are left: the one just made, even if a wrong clock makes it look old, and the
 * newest of the others. Returns the deleted backups.
 */
export function prune(folder: string, kind: Kind, { keep, made }: { keep: number; made: string }): string[] {
  const others = listBackups(folder, kind).filter(({ path }) => path !== made);
  const old = others.slice(0, Math.max(0, others.length - (keep - 1)));
  for (const { path } of old) removeBackup(path, kind);
  return old.map(({ path }) => path);
}

export function removeBackup(path: string, kind: Kind): void {
  rmSync(moveAway(path, kind), { recursive: true });
}

/**
 * Renames a backup before it is deleted, so that half of a backup is never taken for a whole one. Returns its new path.
 */
export function moveAway(path: string, kind: Kind): string {
  const draft = draftPath(path, kind);
  renameSync(path, draft);
  return draft;
}

/** Deletes abandoned drafts. `all`: deletes recent drafts too, if no other backup can be running. */
export function removeDrafts(
  folder: string,
  kind: Kind,
  { nowSeconds, all }: { nowSeconds: number; all: boolean },
): void {
  for (const name of readdirSync(folder)) {
    if (!draftPattern.test(name) || !name.startsWith(`.${kinds[kind]}-`)) continue;
    const draft = join(folder, name);
    if (all || nowSeconds - newestChange(draft) > draftSeconds) rmSync(draft, { recursive: true, force: true });
  }
}

/** Returns the Unix seconds of the newest change in a folder. */
function newestChange(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 0;
  const own = stats.mtimeMs / 1000;
  return stats.isDirectory() ? Math.max(own, ...readdirSync(path).map((name) => newestChange(join(path, name)))) : own;
}

/** Syncs the path with its content: files, folders and their names. */
export async function syncPath(path: string): Promise<void> {
  if (statSync(path).isDirectory()) for (const name of readdirSync(path)) await syncPath(join(path, name));
  await syncEntry(path);
}

/** Syncs a file, or the names in a folder. */
export async function syncEntry(path: string): Promise<void> {
  const handle = await open(path, "r");
  await handle.sync().finally(() => handle.close());
}
