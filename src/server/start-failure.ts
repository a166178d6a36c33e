// Explains why a server cannot start, with a remedy, whatever part failed.
import { statfsSync } from "node:fs";
import { dirname, join } from "node:path";
import { GatewayError, StartError } from "../base/errors.ts";

/** Errors of a full file system (errno(3)), and of SQLite if its file, log or shared memory cannot grow. */
const noRoom = /\b(ENOSPC|EDQUOT|SQLITE_FULL)\b|no space left on device|disk quota exceeded|database or disk is full/i;
/** SQLite's codes that may mean a full disk, when it maps a file into memory. */
const maybeNoRoom = /\bSQLITE_(IOERR|CANTOPEN)/;
/** SQLite's codes for a damaged file, or a file of another format. */
const damaged = /\bSQLITE_(CORRUPT|NOTADB)/;
/** PostgreSQL's `disk_full`, of class 53 of its error codes. */
const postgresIsFull = /\b53100\b/;
const smallestRoomBytes = 1_000_000;

/** Returns an error whose message has a remedy; `error` itself if it has one already. */
export function startFailure(error: unknown, dataDir: string): unknown {
  const said = wholeText(error);
  if (postgresIsFull.test(said)) {
    return new StartError(
      "The disk of the PostgreSQL server is full: make room there, and start again. What is there already is kept.",
      { cause: error },
    );
  }
  if (noRoom.test(said) || (maybeNoRoom.test(said) && freeBytes(dataDir) < smallestRoomBytes)) {
    return new StartError(
      `The disk of ${dataDir} is full, and the server must be able to write there. Make room (df -h and df -i show what is used), or choose another place with --data-dir; then start again. What is there already is kept.`,
      { cause: error },
    );
  }
  if (damaged.test(said) && !(error instanceof StartError)) {
    const file = join(dataDir, "headrace.db");
    return new StartError(
      `The database ${file} is damaged, or no database of SQLite. Copy the data directory as it is, then restore a backup: headrace restore BACKUP --data-dir ${dataDir} --replace`,
      { cause: error },
    );
  }
  if (!(error instanceof GatewayError)) return error;
  // Add the detail: this message was meant for requests, which retry later, but here the error ends the start.
  const detail = error.detail === undefined ? "" : ` (${error.detail})`;
  return new StartError(
    `The server cannot start: ${error.message}${detail} Look at the database, and at HEADRACE_REDIS_URL where that is set; then start again.`,
    { cause: error },
  );
}

/** Returns the codes and messages of the error and its causes. */
function wholeText(error: unknown, depth = 0): string {
  if (!(error instanceof Error) || depth > 8) return String(error);
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  return [code, error.message, detail, error.cause && wholeText(error.cause, depth + 1)].join(" ");
}

/** Returns the free bytes of the directory's file system, or of the nearest existing parent's; infinite if unknown. */
function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return dirname(path) === path ? Number.POSITIVE_INFINITY : freeBytes(dirname(path));
  }
}
