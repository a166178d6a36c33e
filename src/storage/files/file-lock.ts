// An exclusive lock between processes, on a small separate file.
import { Database } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";

/**
 * Holds the operating system's lock until the returned function is called, or the process dies in any way. Returns
 * undefined if another process, or an earlier call in this process, holds the lock. Creates a missing `file`.
 */
export function tryLockFile(file: string): (() => void) | undefined {
  makePrivate(file);
  const lock = new Database(file, { create: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    lock.run("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code !== "SQLITE_BUSY") throw error;
    return undefined;
  }
  return () => lock.close();
}

/**
 * Creates the file for its owner only, whatever the umask: whoever can lock it can prevent a server from starting. An
 * existing file is not opened, because closing it would release this process's lock (POSIX, fcntl).
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "ax", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
