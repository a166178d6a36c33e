// An exclusive lock between processes, on a small file of its own.
import { Database } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";

/**
 * Holds the lock until the returned function is called, or the process dies however it may: it is the operating system's.
 * Undefined while another process, or another call in this one, holds it. `file` is made where there is none.
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
 * Makes the file for its owner alone, whatever the umask: who can lock it can keep a server from starting. One that is there is not opened,
 * as closing it would end a lock that this process has on it (POSIX, fcntl).
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "ax", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
