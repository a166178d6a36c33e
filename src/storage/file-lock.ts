// An exclusive lock between processes, on a small file of its own.
import { Database } from "bun:sqlite";

/**
 * Holds the lock until the returned function is called, or the process dies however it may: it is the operating system's.
 * Undefined while another process, or another call in this one, holds it. `file` is made where there is none.
 */
export function tryLockFile(file: string): (() => void) | undefined {
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
