// The size of the database.
import { stat } from "node:fs/promises";
import { type Database, dialectOf } from "./database.ts";
import { databaseFile } from "./durable-commits.ts";

export interface DatabaseSize {
  /** Size of the database; null if it could not be read. */
  bytes: number | null;
  /** Size of SQLite's write-ahead log; null for PostgreSQL and databases in memory. */
  walBytes: number | null;
}

/** Reads the size of the database. Never rejects. */
export async function databaseSize(db: Database): Promise<DatabaseSize> {
  if (dialectOf(db) === "sqlite") {
    const file = await databaseFile(db);
    if (file === undefined) return { bytes: null, walBytes: null };
    const [bytes, walBytes] = await Promise.all([sizeOf(file), sizeOf(`${file}-wal`)]);
    return { bytes, walBytes };
  }
  try {
    const [row]: { bytes: number | string }[] = await db`SELECT pg_database_size(current_database()) AS bytes`;
    return { bytes: Number(row?.bytes), walBytes: null };
  } catch {
    return { bytes: null, walBytes: null };
  }
}

/** Returns 0 for a missing file: a write-ahead log comes and goes. */
async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
