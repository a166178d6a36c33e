// Makes commits survive a power cut at chosen moments: SQLite's `synchronous=NORMAL` syncs only at the next checkpoint.
import { open } from "node:fs/promises";
import { GatewayError } from "../../base/errors.ts";
import { type Database, dialectOf } from "./database.ts";
import { fileOf } from "./database-file.ts";

/** Databases whose last sync failed. */
const failing = new WeakSet<object>();
/** Error codes of file systems without a sync call. Such a file system is taken to be as durable as it promises. */
const unknownCall = /^(EINVAL|ENOSYS|ENOTSUP|EOPNOTSUPP)$/;
const retryAfterSeconds = 5;

/**
 * Resolves when all earlier commits are on disk. Syncs the write-ahead log outside of the thread that serves requests;
 * older parts were synced by SQLite when it moved them to the database file. PostgreSQL syncs each commit before it
 * answers, unless its operator changed that. Rejects if the sync fails, or the file is not in its place.
 */
export async function syncCommits(db: Database): Promise<void> {
  const file = await databaseFile(db);
  if (file === undefined) return;
  fileOf(db)?.require();
  try {
    // Never opens the database file itself: closing a descriptor of it would drop SQLite's locks.
    const log = await open(`${file}-wal`);
    await log.datasync().finally(() => log.close());
  } catch (error) {
    const code = codeOf(error);
    if (code !== "ENOENT" && !unknownCall.test(code)) {
      failing.add(db.options);
      throw error;
    }
  }
  failing.delete(db.options);
}

/** Reports whether the last sync succeeded. */
export function isSynced(db: Database): boolean {
  return !failing.has(db.options);
}

/** Rejects with `service_unavailable` while syncs fail. Call it before a change. */
export async function requireSync(db: Database): Promise<void> {
  if (isSynced(db)) return;
  try {
    await syncCommits(db);
  } catch (error) {
    throw unsynced("The disk of the database does not keep what is written, so nothing is changed.", error);
  }
}

/**
 * Syncs a committed change. If a power cut might still undo the change, rejects with `service_unavailable`, whose
 * message says that the change applies.
 */
export async function confirmCommits(db: Database): Promise<void> {
  try {
    await syncCommits(db);
  } catch (error) {
    throw unsynced(
      "The change was made and holds now, but the disk of the database did not keep it: a power cut may undo it. See what is there before you repeat it.",
      error,
    );
  }
}

function unsynced(message: string, cause: unknown): GatewayError {
  return new GatewayError("service_unavailable", message, {
    detail: `sync of the database: ${codeOf(cause)}`,
    retryAfterSeconds,
    cause,
  });
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return String(code ?? error);
}

/** Returns the path of the database's file. Undefined for a database in memory or PostgreSQL. */
export async function databaseFile(db: Database): Promise<string | undefined> {
  if (dialectOf(db) === "postgres") return undefined;
  const databases: { name: string; file: string }[] = await db.unsafe("PRAGMA database_list");
  return databases.find((database) => database.name === "main")?.file || undefined;
}
