// Takes what was deleted out of SQLite's write-ahead log as well, soon after.
import { SQL } from "bun";
import { checkpoint } from "./checkpointer.ts";
import { type Database, dialectOf } from "./database.ts";

/** About the time from a deletion until no file has the content any more. */
const eraseAfterMs = 1_000;

/** PostgreSQL's own housekeeping is its operator's. */
export class Erasing {
  readonly #db: Database;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** To be called for every deletion of content: what stands in the log until that is emptied; many in a row are one. */
  soon(): void {
    if (dialectOf(this.#db) === "postgres") return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#erase();
    }, eraseAfterMs);
    this.#timer.unref();
  }

  /** A reader or a transaction that is in the way has it tried again. */
  async #erase(): Promise<void> {
    try {
      // What is left to do here then needs no wait for the disk.
      await checkpoint(this.#db);
      const [result]: { busy: number }[] = await this.#db.unsafe("PRAGMA wal_checkpoint(TRUNCATE)");
      if (result?.busy === 0) return;
    } catch (error) {
      // Nothing is left to erase where the database is closed.
      if (!(error instanceof SQL.SQLiteError && /^SQLITE_(BUSY|LOCKED)/.test(String(error.code)))) return;
    }
    this.soon();
  }
}
