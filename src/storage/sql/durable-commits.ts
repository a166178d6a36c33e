// Makes commits survive a power cut, at moments of our choice: SQLite's `synchronous=NORMAL` leaves that to the next checkpoint.
import { open } from "node:fs/promises";
import { type Database, dialectOf } from "./database.ts";

/**
 * Resolves when everything that was committed before the call is on the disk. It syncs the write-ahead log outside of the
 * thread that serves requests; what is no longer in there, SQLite itself synced when it moved it to the database file.
 * PostgreSQL has synced each commit by the time that it answers, unless its operator wanted otherwise.
 */
export async function syncCommits(db: Database): Promise<void> {
  const file = await databaseFile(db);
  if (file === undefined) return;
  try {
    // Never the database file itself: closing any descriptor of it would drop the locks that SQLite holds on it.
    const log = await open(`${file}-wal`);
    await log.datasync().finally(() => log.close());
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
}

/** Path of the database's file; undefined where it is in memory, or PostgreSQL's. */
export async function databaseFile(db: Database): Promise<string | undefined> {
  if (dialectOf(db) === "postgres") return undefined;
  const databases: { name: string; file: string }[] = await db.unsafe("PRAGMA database_list");
  return databases.find((database) => database.name === "main")?.file || undefined;
}
