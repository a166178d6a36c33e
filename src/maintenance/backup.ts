// Backs up a data directory, even while a server runs on it: first the ledger's spool, then the database.
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { SQL } from "bun";
import { StartError } from "../base/errors.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { threadFile } from "../installation/paths.ts";
import { listSegments } from "../ledger/spool-reader.ts";
import {
  bytesOfCopy,
  type CopiedDatabase,
  type CopyAnswer,
  type CopyRequest,
  digestOf,
} from "../storage/backup/backup-copy.ts";
import { draftPath, moveAway, syncEntry, syncPath } from "../storage/backup/backup-folder.ts";
import {
  type BackupManifest,
  type BackupPart,
  backupDatabase,
  backupSecret,
  backupSpool,
  bytesOf,
  findManifest,
  formatVersion,
  manifestName,
} from "../storage/backup/backup-manifest.ts";
import { writeSecretFile } from "../storage/files/secret-file.ts";
import { startError, wasUsed, withoutAccounts } from "./installation-id.ts";
import { secretInUse } from "./installation-secret.ts";

export interface BackupOptions {
  dataDir: string;
  /** The folder to create. Its parent exists. */
  target: string;
  kind: BackupManifest["kind"];
  /** Version of this program. */
  version: string;
  nowSeconds: number;
  /** True if an existing backup at the target is replaced. */
  force?: boolean;
  /** Secrets to include. */
  secrets?: KeyRing | undefined;
  /** A text that is stored in the backup's manifest, to identify the source. */
  source?: string;
  onProgress?: (progress: BackupProgress) => void;
  /** If aborted, the backup stops and removes its files. */
  signal?: AbortSignal;
  /** Returns the free bytes on the disk of a folder. */
  freeBytes?: (folder: string) => number;
}

export type BackupProgress =
  | { phase: "copying"; bytes: number; totalBytes: number }
  /** The copy is verified. */
  | { phase: "checking" };

export interface Backup {
  path: string;
  manifest: BackupManifest;
  bytes: number;
}

const progressMs = 200;
/** Bytes of disk space that must stay free for a running server. */
const spareBytes = 16 * 1024 * 1024;

/**
 * Makes a backup with all records that were settled before it began. No record is missed, because the spool is copied
 * before the database. The restore counts a record that is in both only once. On failure, rejects with a StartError and
 * leaves no files.
 */
export async function makeBackup(options: BackupOptions): Promise<Backup> {
  const { dataDir, target, kind } = options;
  const database = join(dataDir, backupDatabase);
  requireDatabase(database);
  const replaced = requireFree(options);
  const totalBytes = readable(database, () => bytesOfCopy(database));
  requireRoom(options, totalBytes + spoolBytes(dataDir));
  const draft = draftPath(target, kind);
  try {
    mkdirSync(draft, { mode: 0o700 });
    const parts = copySpool(dataDir, draft);
    const { schema, counts, sha256 } = await copyInThread(options, { database, draft, totalBytes });
    // Fail instead of keeping a copy of an emptied database, which would replace good backups.
    if ((counts["accounts"] ?? 0) === 0 && wasUsed(dataDir)) throw startError(withoutAccounts(dataDir));
    const copy = join(draft, backupDatabase);
    parts.unshift({ name: backupDatabase, bytes: statSync(copy).size, sha256 });
    if (options.secrets !== undefined) parts.push(await addSecrets(draft, options.secrets, options.nowSeconds));
    const manifest: BackupManifest = {
      format: "headrace-backup",
      format_version: formatVersion,
      kind,
      headrace: options.version,
      schema,
      created_at: options.nowSeconds,
      ...(options.source === undefined ? {} : { source: options.source }),
      counts,
      parts,
    };
    writeFileSync(join(draft, manifestName), `${JSON.stringify(manifest, undefined, 2)}\n`, { mode: 0o600 });
    await syncPath(draft);
    options.signal?.throwIfAborted();
    // Delete the replaced backup last: that may take long, and the new one must be in place if the command is killed.
    const before = replaced ? moveAway(target, kind) : undefined;
    try {
      renameSync(draft, target);
    } catch (error) {
      if (before !== undefined) renameSync(before, target);
      throw error;
    }
    await syncEntry(dirname(target));
    if (before !== undefined) rmSync(before, { recursive: true });
    return { path: target, manifest, bytes: bytesOf(manifest) };
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw explained(error, options);
  }
}

function requireDatabase(file: string): void {
  if (existsSync(file) && statSync(file).size > 0) return;
  throw new StartError(`There is no database ${file}: name the data directory of the server with --data-dir.`);
}

/** Returns whether the target is a backup that may be replaced; false if it does not exist. Throws otherwise. */
function requireFree({ target, force = false }: BackupOptions): boolean {
  if (!existsSync(target)) return false;
  if (findManifest(target) === undefined) {
    throw new StartError(`${target} exists, and is no backup of Headrace: it is left as it is. Name another path.`);
  }
  if (force) return true;
  throw new StartError(`There is a backup at ${target} already. Name another path, or replace it with --force.`);
}

function requireRoom({ target, freeBytes = freeOnDisk }: BackupOptions, neededBytes: number): void {
  const folder = dirname(target);
  if (!existsSync(folder)) throw new StartError(`There is no folder ${folder}: make it first.`);
  const free = freeBytes(folder);
  const needed = neededBytes + spareBytes;
  if (free >= needed) return;
  throw new NoRoom(
    `The backup takes about ${megabytes(needed)} in ${folder}, where ${megabytes(free)} are free. Make room, or name a path on another disk.`,
  );
}

export class NoRoom extends StartError {
  override readonly name = "NoRoom";
}

function freeOnDisk(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6).toLocaleString("en")} MB`;
}

function spoolBytes(dataDir: string): number {
  return segmentsOf(dataDir).reduce((sum, { path }) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
}

function segmentsOf(dataDir: string) {
  const directory = join(dataDir, backupSpool);
  return existsSync(directory) ? listSegments(directory) : [];
}

/** Copies the spool files. A file that disappears meanwhile is in the database. */
function copySpool(dataDir: string, draft: string): BackupPart[] {
  mkdirSync(join(draft, backupSpool), { mode: 0o700 });
  return segmentsOf(dataDir).flatMap(({ path }) => {
    const name = `${backupSpool}/${basename(path)}`;
    const copy = join(draft, name);
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || existsSync(path)) throw error;
      rmSync(copy, { force: true });
      return [];
    }
    chmodSync(copy, 0o600);
    return [{ name, bytes: statSync(copy).size, sha256: digestOf(copy) }];
  });
}

interface CopyPlan {
  database: string;
  draft: string;
  totalBytes: number;
}

async function copyInThread(
  { kind, onProgress, signal }: BackupOptions,
  { database, draft, totalBytes }: CopyPlan,
): Promise<CopiedDatabase> {
  const copy = join(draft, backupDatabase);
  // Create the file first: SQLite fills it and keeps its mode.
  closeSync(openSync(copy, "ax", 0o600));
  const report = () => {
    const bytes = Math.min(statSync(copy, { throwIfNoEntry: false })?.size ?? 0, totalBytes);
    onProgress?.({ phase: "copying", bytes, totalBytes });
  };
  const thread = new Worker(threadFile("copy-database"));
  const timer = setInterval(report, progressMs);
  try {
    return await new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      thread.onerror = (event) => reject(new Error(event.message));
      thread.onmessage = ({ data }: MessageEvent<CopyAnswer>) => {
        if (data.state === "done") resolve(data.copied);
        else if (data.state === "failed") reject(new CopyFailed(data.code, data.message));
        else {
          clearInterval(timer);
          report();
          onProgress?.({ phase: "checking" });
        }
      };
      thread.postMessage({ source: database, target: copy, gently: kind === "backup" } satisfies CopyRequest);
    });
  } finally {
    clearInterval(timer);
    thread.terminate();
  }
}

class CopyFailed extends Error {
  readonly code: string | undefined;

  constructor(code: string | undefined, message: string) {
    super(message);
    this.code = code;
  }
}

async function addSecrets(draft: string, secrets: KeyRing, nowSeconds: number): Promise<BackupPart> {
  if ((await hasSecretOf(join(draft, backupDatabase), secrets, nowSeconds)) === false) {
    throw new StartError(
      "The secret is not the one that the server uses, so it would be of no use in the backup. Set HEADRACE_SECRET as for the server, or unset it where the server uses the file `secret` in the data directory.",
    );
  }
  const file = join(draft, backupSecret);
  writeSecretFile(file, secrets);
  return { name: backupSecret, bytes: statSync(file).size, sha256: digestOf(file) };
}

/**
 * Reports whether the database was set up with one of the secrets; undefined if the database is too old to tell. No
 * other process may use the file.
 */
export async function hasSecretOf(file: string, secrets: KeyRing, nowSeconds: number): Promise<boolean | undefined> {
  const db = new SQL({ adapter: "sqlite", filename: file, create: false });
  try {
    return (await secretInUse(db, secrets, nowSeconds)) !== undefined;
  } catch (error) {
    const isOld = [error, (error as { cause?: unknown }).cause].some(
      (one) => one instanceof SQL.SQLiteError && /no such (table|column)/.test(one.message),
    );
    if (isOld) return undefined;
    throw error;
  } finally {
    await db.close();
  }
}

function readable<Result>(database: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (!code?.startsWith("SQLITE_")) throw error;
    throw new StartError(`The database ${database} cannot be read: ${message} (${code}).`, { cause: error });
  }
}

function explained(error: unknown, { dataDir, target }: BackupOptions): unknown {
  const database = join(dataDir, backupDatabase);
  if (error instanceof CopyFailed) {
    if (error.code === "SQLITE_FULL" || error.code === "SQLITE_IOERR_WRITE") {
      return new NoRoom(
        `The disk of ${dirname(target)} is full: there is no backup. Make room, or name a path on another disk.`,
      );
    }
    return new StartError(
      error.code === undefined
        ? `The database ${database} is damaged, so there is no backup of it: ${error.message}. Older backups are left as they are.`
        : `The database ${database} cannot be copied: ${error.message} (${error.code}).`,
      { cause: error },
    );
  }
  const { code } = error as { code?: unknown };
  if (code === "EACCES" || code === "EROFS" || code === "EPERM") {
    return new StartError(
      `${String(error)}. Run it as the user of the server, with a path that this user may write to.`,
    );
  }
  if (code === "ENOSPC") {
    return new NoRoom(
      `The disk of ${dirname(target)} is full: there is no backup. Make room, or name a path on another disk.`,
    );
  }
  return error;
}
