// One server for each data directory: two would count, mint keys and rewrite credentials past each other.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { StartError } from "../domain/errors.ts";

export class DataDirectoryInUse extends StartError {
  override readonly name = "DataDirectoryInUse";
}

/**
 * Holds an exclusive lock until the returned function is called, or the process dies however it may: the lock is the
 * operating system's, on a small file of its own. Throws DataDirectoryInUse while another server holds it.
 */
export function lockDataDirectory(dataDir: string): () => void {
  const lock = new Database(join(dataDir, "server.lock"), { create: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    lock.run("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code !== "SQLITE_BUSY") throw error;
    throw new DataDirectoryInUse(
      `Another Headrace uses the data directory ${dataDir}. Stop that, or give this one a directory of its own with --data-dir.`,
    );
  }
  return () => lock.close();
}
