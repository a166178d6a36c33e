// Tells whether the files of an embedded database are still those that were opened: what is written to a file without its name is lost.
import { statSync } from "node:fs";
import type { SQL } from "bun";
import { GatewayError } from "../../base/errors.ts";

const retryAfterSeconds = 5;
const places = new WeakMap<object, DatabasePlace>();

export class DatabasePlace {
  readonly #files: readonly { path: string; opened: string }[];

  /** The database must be open: its files are remembered as they are now. */
  constructor(file: string) {
    this.#files = [file, `${file}-wal`].flatMap((path) => {
      const opened = identityOf(path);
      return opened === undefined ? [] : [{ path, opened }];
    });
  }

  /** Path of a file that was moved, deleted or replaced; undefined where all are in place. */
  get displaced(): string | undefined {
    return this.#files.find(({ path, opened }) => identityOf(path) !== opened)?.path;
  }

  /** Throws `service_unavailable` where a file is not in place. Costs two calls of the file system. */
  require(): void {
    const path = this.displaced;
    if (path !== undefined) throw displacedError(path);
  }
}

/** Remembers where the files of `db` are. */
export function rememberPlace(db: SQL, file: string): void {
  places.set(db.options, new DatabasePlace(file));
}

/** Undefined for PostgreSQL, and for a connection that is no server's. */
export function placeOf(db: SQL): DatabasePlace | undefined {
  return places.get(db.options);
}

/** The open file keeps its number from being used again. Undefined where the path leads to no file that we may see. */
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
