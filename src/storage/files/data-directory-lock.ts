// One server for each data directory: two would count, mint keys and rewrite credentials past each other.
import { join } from "node:path";
import { StartError } from "../../base/errors.ts";
import { tryLockFile } from "./file-lock.ts";

export class DataDirectoryInUse extends StartError {
  override readonly name = "DataDirectoryInUse";
}

/**
 * Holds an exclusive lock until the returned function is called, or the process dies. Throws DataDirectoryInUse while
 * another server holds it.
 */
export function lockDataDirectory(dataDir: string): () => void {
  const release = tryLockFile(join(dataDir, "server.lock"));
  if (release) return release;
  throw new DataDirectoryInUse(
    `Another Headrace uses the data directory ${dataDir}. Stop that, or give this one a directory of its own with --data-dir.`,
  );
}
