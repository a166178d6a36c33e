// Refuses a download that would fill the disk, before its first byte.
import { statfs } from "node:fs/promises";
import { formatBytes } from "./byte-size.ts";
import { SetupError } from "./setup-error.ts";

// These bytes stay free, so that the server can still write its ledger.
const reserveBytes = 100_000_000;

/**
 * Rejects with a SetupError if `bytes` more do not fit on the disk of `directory`. `advice` tells the user what
 * to do.
 */
export async function requireDiskSpace(directory: string, bytes: number, advice: string): Promise<void> {
  if (bytes <= 0) return;
  const roomBytes = await diskRoom(directory);
  if (bytes <= roomBytes) return;
  throw new SetupError(
    `${formatBytes(bytes)} are needed, but ${directory} has room for ${formatBytes(roomBytes)}. ${advice}`,
  );
}

/** Returns the number of bytes that may be written to the disk of `directory`. */
export async function diskRoom(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return Math.max(0, bavail * bsize - reserveBytes);
}
