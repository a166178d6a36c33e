// Makes commits survive a power cut, at moments of our choice: SQLite's `synchronous=NORMAL` leaves that to the next checkpoint.
import { open } from "node:fs/promises";
import { GatewayError } from "../../base/errors.ts";
import { type Database, dialectOf } from "./database.ts";
import { placeOf } from "./database-place.ts";

/** Databases whose last sync failed. */
const failing = new WeakSet<object>();
/** A file system that has no such call cannot be asked; it loses no more than it says. */
const unknownCall = /^(EINVAL|ENOSYS|ENOTSUP|EOPNOTSUPP)$/;
const retryAfterSeconds = 5;

/**
 * Resolves when everything that was committed before the call is on the disk. It syncs the write-ahead log outside of the
 * thread that serves requests; what is no longer in there, SQLite itself synced when it moved it to the database file.
 * PostgreSQL has synced each commit by the time that it answers, unless its operator wanted otherwise. Rejects where the
 * disk refuses, or the file is not in its place.
 */
export async function syncCommits(db: Database): Promise<void> {
  const file = await databaseFile(db);
  if (file === undefined) return;
  placeOf(db)?.require();
  try {
    // Never the database file itself: closing any descriptor of it would drop the locks that SQLite holds on it.
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

/** True if the disk has taken all commits that it was asked to keep. */
export function isSynced(db: Database): boolean {
  return !failing.has(db.options);
}

/** Rejects with `service_unavailable`, before anything is changed, while the disk does not keep what is written. */
export async function requireSync(db: Database): Promise<void> {
  if (isSynced(db)) return;
  try {
    await syncCommits(db);
  } catch (error) {
    throw unsynced("The disk of the database does not keep what is written, so nothing is changed.", error);
  }
}

/**
 * Resolves as `syncCommits` does, for a change that was committed. Rejects with `service_unavailable`, which says that the
 * change holds, where a power cut might undo it.
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

/** Path of the database's file; undefined where it is in memory, or PostgreSQL's. */
export async function databaseFile(db: Database): Promise<string | undefined> {
  if (dialectOf(db) === "postgres") return undefined;
  const databases: { name: string; file: string }[] = await db.unsafe("PRAGMA database_list");
  return databases.find((database) => database.name === "main")?.file || undefined;
}
