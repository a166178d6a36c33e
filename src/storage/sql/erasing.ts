// Erases deleted content from SQLite's write-ahead log as well, soon after the deletion.
import { SQL } from "bun";
import { checkpoint } from "./checkpointer.ts";
import { type Database, dialectOf } from "./database.ts";

/** The approximate time from a deletion until no file has the content any more. */
const eraseAfterMs = 1_000;

/**
 * Erases deleted content from SQLite's write-ahead log. For PostgreSQL it does nothing: its housekeeping is the
 * operator's task.
 */
export class Erasing {
  readonly #db: Database;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Schedules an erasure of the write-ahead log. Call it after every deletion of content; several calls in a row cause
   * one erasure.
   */
  soon(): void {
    if (dialectOf(this.#db) === "postgres") return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#erase();
    }, eraseAfterMs);
    this.#timer.unref();
  }

  /** Erases the content now, or later if a reader or a transaction prevents it. */
  async #erase(): Promise<void> {
    try {
      // Moves most of the log first, so that the rest needs no wait for the disk.
      await checkpoint(this.#db);
      const [result]: { busy: number }[] = await this.#db.unsafe("PRAGMA wal_checkpoint(TRUNCATE)");
      if (result?.busy === 0) return;
    } catch (error) {
      // A closed database has nothing left to erase.
      if (!(error instanceof SQL.SQLiteError && /^SQLITE_(BUSY|LOCKED)/.test(String(error.code)))) return;
    }
    this.soon();
  }
}
