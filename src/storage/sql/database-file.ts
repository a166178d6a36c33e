// Detects whether the files of an open SQLite database were moved or replaced: writes to a file without its name are
// lost.
import { statSync } from "node:fs";
import type { SQL } from "bun";
import { GatewayError } from "../../base/errors.ts";

const retryAfterSeconds = 5;
const locations = new WeakMap<object, DatabaseFile>();

export class DatabaseFile {
  readonly #files: readonly { path: string; opened: string }[];

  /** Remembers the current identities of the database's files. The database must be open. */
  constructor(file: string) {
    this.#files = [file, `${file}-wal`].flatMap((path) => {
      const opened = identityOf(path);
      return opened === undefined ? [] : [{ path, opened }];
    });
  }

  /** Path of a file that was moved, deleted or replaced. Undefined if all are in place. */
  get displaced(): string | undefined {
    return this.#files.find(({ path, opened }) => identityOf(path) !== opened)?.path;
  }

  /** Throws `service_unavailable` if a file is not in place. Costs two system calls. */
  require(): void {
    const path = this.displaced;
    if (path !== undefined) throw displacedError(path);
  }
}

/** Remembers the files of `db`. */
export function rememberFile(db: SQL, file: string): void {
  locations.set(db.options, new DatabaseFile(file));
}

/** Returns the remembered files of a database. Undefined for PostgreSQL and for connections other than a server's. */
export function fileOf(db: SQL): DatabaseFile | undefined {
  return locations.get(db.options);
}

/**
 * Returns the device and inode of a file, which are not reused while it is open. Undefined if the path leads to no
 * visible file.
 */
function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    return undefined;
  }
}

function displacedError(path: string): GatewayError {
  return new GatewayError(
    "service_unavailable",
    "The file of the database was moved, deleted or replaced while the server runs, so nothing is changed. Put it back, or restart the server.",
    { detail: `not the file that was opened: ${path}`, retryAfterSeconds },
  );
}
