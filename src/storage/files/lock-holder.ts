// Finds which process, if any, holds a data directory's lock, without taking the lock.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { tryLockFile } from "./file-lock.ts";

/** Files that a server locks in its data directory. If somebody deletes the first file, the second lock still works. */
export const lockNames = ["server.lock", ".server.lock"] as const;

/** `pid` is undefined on systems other than Linux. */
export type LockState = { held: false } | { held: true; pid: number | undefined };

/** Throws if a lock file cannot be opened. */
export function lockState(dataDir: string): LockState {
  for (const name of lockNames) {
    const state = stateOf(join(dataDir, name));
    if (state.held) return state;
  }
  return { held: false };
}

function stateOf(file: string): LockState {
  if (!existsSync(file)) return { held: false };
  const pid = holderOf(file);
  // If the system reports the holder, the lock is not tried, because a try would make a starting server fail.
  if (pid !== undefined) return { held: true, pid };
  const release = tryLockFile(file);
  release?.();
  return release ? { held: false } : { held: true, pid: undefined };
}

/** proc_locks(5): `1: POSIX  ADVISORY  WRITE 1234 08:01:131 1073741824 1073742335`; the inode is the third part. */
function holderOf(file: string): number | undefined {
  let locks: string;
  try {
    locks = readFileSync("/proc/locks", "utf8");
  } catch {
    return undefined;
  }
  const { ino, dev } = statSync(file);
  for (const line of locks.split("\n")) {
    const [, , , kind, pid, fileId = ""] = line.trim().split(/\s+/);
    const [major = "", minor = "", inode = ""] = fileId.split(":");
    if (kind !== "WRITE" || inode !== String(ino) || !sameDevice(dev, major, minor)) continue;
    // The pid is 0 or less for a process in another PID namespace, such as a container's.
    return Number(pid) > 0 ? Number(pid) : undefined;
  }
  return undefined;
}

/** Compares a `stat` device number, encoded as glibc's `makedev` does, with its parts, for the numbers that occur. */
function sameDevice(dev: number, major: string, minor: string): boolean {
  const value = BigInt(dev);
  const ownMajor = (value >> 8n) & 0xfffn;
  const ownMinor = (value & 0xffn) | ((value >> 12n) & 0xfff00n);
  return ownMajor === BigInt(`0x${major || "0"}`) && ownMinor === BigInt(`0x${minor || "0"}`);
}
