// Restores a backup into a data directory while no server runs on it.
import { createReadStream, createWriteStream, existsSync, mkdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SQL } from "bun";
import { StartError } from "../base/errors.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import { newPath, syncPath } from "../storage/backup/backup-folder.ts";
import {
  type BackupManifest,
  type BackupPart,
  backupDatabase,
  backupSecret,
  backupSpool,
  bytesOf,
  readManifest,
} from "../storage/backup/backup-manifest.ts";
import { beginRestore, finishRestore, whatIsThere } from "../storage/backup/restore-steps.ts";
import { DataDirectoryInUse, lockDataDirectory } from "../storage/files/data-directory-lock.ts";
import { makeDirectory } from "../storage/files/durable-file.ts";
import { readSecretFile } from "../storage/files/secret-file.ts";
import { knownSteps, pendingSteps, schemaState } from "../storage/sql/schema.ts";
import { type RevokedCredential, revokedSince } from "../storage/tables/revoked-since.ts";
import { hasSecretOf } from "./backup.ts";

export interface RestoreOptions {
  /** A folder created by `headrace backup`. */
  backup: string;
  dataDir: string;
  /** True if existing content may be moved aside. */
  replace: boolean;
  /** The secrets in HEADRACE_SECRET; undefined if it is not set. */
  secrets: KeyRing | undefined;
  nowSeconds: number;
  /** Called once with the backup's manifest, before anything is changed. */
  onBegin?: (manifest: BackupManifest) => void;
  onProgress?: (bytes: number) => void;
  /** If aborted before the records are replaced, the restore changes nothing. */
  signal?: AbortSignal;
}

export interface Restored {
  manifest: BackupManifest;
  /** The folder that the earlier content was moved to; undefined if there was none. */
  replaced: string | undefined;
  /** Tells whether the secret fits the backup. `unknown`: there is no secret, or it cannot be checked. */
  secret: "right" | "unknown";
  /** Credentials, people, accounts and apps that were revoked or suspended after the backup. Undefined if unknown. */
  validAgain: RevokedCredential[] | undefined;
}

const draftName = "restore-draft";

/** Restores a backup. On failure, rejects with a StartError and leaves the data directory unchanged. */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { backup, dataDir, nowSeconds } = options;
  const manifest = readManifest(backup);
  makeDirectory(dataDir);
  const release = lockForRestore(dataDir);
  const draft = join(dataDir, draftName);
  try {
    // First complete an earlier restore that was interrupted.
    await finishRestore(dataDir);
    requireReplaceable(options, manifest);
    requireRoom(dataDir, bytesOf(manifest));
    options.onBegin?.(manifest);
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft, { mode: 0o700 });
    await copyParts(options, manifest, draft);
    const database = join(draft, backupDatabase);
    await requireKnownSteps(database, manifest);
    const secret = await requireSecret(options, draft);
    const current = join(dataDir, backupDatabase);
    const validAgain = existsSync(current) ? revokedSince(current, database, nowSeconds) : undefined;
    await syncPath(draft);
    options.signal?.throwIfAborted();
    await beginRestore(dataDir, draft, basename(newPath(dataDir, "replaced", nowSeconds)));
    const replaced = await finishRestore(dataDir);
    return {
      manifest,
      replaced: replaced !== undefined && existsSync(replaced) ? replaced : undefined,
      secret,
      validAgain,
    };
  } catch (error) {
    // Throw the reason of the abort instead of a consequence.
    options.signal?.throwIfAborted();
    throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
    release();
  }
}

function lockForRestore(dataDir: string): () => void {
  try {
    return lockDataDirectory(dataDir);
  } catch (error) {
    if (!(error instanceof DataDirectoryInUse)) throw error;
    throw new StartError(
      `A Headrace runs on ${dataDir}, and would go on with what is replaced: stop it first, restore, and start it again.`,
    );
  }
}

function requireReplaceable({ dataDir, replace }: RestoreOptions, manifest: BackupManifest): void {
  const there = whatIsThere(dataDir, [backupDatabase, ...partsAround(manifest)]);
  if (there.length === 0 || replace) return;
  throw new StartError(
    `There are records in ${dataDir} already (${there.join(", ")}). With --replace they are moved aside, into a folder there, and nothing of them is deleted.`,
  );
}

/** Returns the names of all parts of the backup except the database. */
function partsAround({ parts }: BackupManifest): string[] {
  return parts.some(({ name }) => name === backupSecret) ? [backupSpool, backupSecret] : [backupSpool];
}

function requireRoom(dataDir: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(dataDir);
  if (bavail * bsize > bytes) return;
  throw new StartError(
    `The backup takes ${Math.ceil(bytes / 1e6)} MB in ${dataDir}, where ${Math.floor((bavail * bsize) / 1e6)} MB are free. Make room first.`,
  );
}

async function copyParts(options: RestoreOptions, manifest: BackupManifest, draft: string): Promise<void> {
  // Create the spool directory even if it is empty, so that the old spool does not stay.
  mkdirSync(join(draft, backupSpool), { mode: 0o700 });
  let done = 0;
  for (const part of manifest.parts) {
    await copyPart(options, part, draft, (bytes) => {
      done += bytes;
      options.onProgress?.(done);
    });
  }
}

async function copyPart(
  { backup, signal }: RestoreOptions,
  { name, bytes, sha256 }: BackupPart,
  draft: string,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const from = join(backup, name);
  const damaged = new StartError(
    `${from} is not as it was when the backup was made, or is missing: nothing was restored. Use another backup.`,
  );
  // Accept only regular files of the right size: a pipe could be endless.
  const stats = statSync(from, { throwIfNoEntry: false });
  if (!stats?.isFile() || stats.size !== bytes) throw damaged;
  const hasher = new Bun.CryptoHasher("sha256");
  let copied = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hasher.update(chunk);
      copied += chunk.length;
      onBytes(chunk.length);
      done(null, chunk);
    },
  });
  const to = createWriteStream(join(draft, name), { flags: "wx", mode: 0o600 });
  await pipeline(createReadStream(from, { highWaterMark: 1024 * 1024 }), counted, to, signal ? { signal } : {});
  if (copied !== bytes || hasher.digest("hex") !== sha256) throw damaged;
}

/** Throws a StartError if this version cannot use the backup's database. */
async function requireKnownSteps(file: string, { schema, headrace }: BackupManifest): Promise<void> {
  const db = new SQL({ adapter: "sqlite", filename: file, create: false });
  try {
    if (!(await schemaState(db, "sqlite")).isCompatible) {
      throw new StartError(
        `The backup has schema version ${schema}, this Headrace knows ${knownSteps}: restore it with Headrace ${headrace} or later.`,
      );
    }
    await pendingSteps(db, "sqlite");
  } finally {
    await db.close();
  }
}

/** Checks the secret that the next start will use: HEADRACE_SECRET, else the backup's, else the existing one. */
async function requireSecret(
  { dataDir, secrets, nowSeconds }: RestoreOptions,
  draft: string,
): Promise<Restored["secret"]> {
  const own = join(draft, backupSecret);
  const there = join(dataDir, backupSecret);
  const file = [own, there].find((path) => existsSync(path));
  const used = secrets ?? (file === undefined ? undefined : readSecretFile(file));
  if (used === undefined) return "unknown";
  const isRight = await hasSecretOf(join(draft, backupDatabase), used, nowSeconds);
  if (isRight !== false) return isRight === true ? "right" : "unknown";
  const which =
    secrets !== undefined ? "HEADRACE_SECRET" : `The file ${file === own ? "`secret` of the backup" : there}`;
  const fix =
    secrets !== undefined
      ? "Set HEADRACE_SECRET to what it was then, or unset it where the file `secret` was used."
      : "Set HEADRACE_SECRET to what it was then, or put that `secret` into the data directory first.";
  throw new StartError(
    `${which} is not the secret under which this backup was made: every API key, sign-in and sealed setting would be refused. Nothing was restored. ${fix}`,
  );
}
