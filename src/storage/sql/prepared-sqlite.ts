// A connection of its own to a file of SQLite, with statements that are prepared once, whose locks are waited for outside of SQLite.
import { SQLiteError, Database as Sqlite, type Statement } from "bun:sqlite";
import { checkpointsElsewhere } from "./checkpointer.ts";
import { DatabasePlace } from "./database-place.ts";

const maxPauseMs = 16;

/**
 * A transaction begins and ends within one call, so nothing else of this process comes between, and what holds the lock is
 * waited for outside of SQLite, which would wait in the thread that serves requests. Everybody else who reads before
 * writing must begin with IMMEDIATE: else a commit of this one in the middle of it makes it fail.
 */
export class PreparedSqlite {
  readonly #db: Sqlite;
  readonly #place: DatabasePlace;
  readonly #statements = new Map<string, Statement>();

  constructor(file: string) {
    this.#db = new Sqlite(file, { readwrite: true });
    this.#db.run("PRAGMA busy_timeout = 0");
    // The other connection has the same; the journal mode is the file's.
    this.#db.run("PRAGMA synchronous = NORMAL");
    for (const pragma of checkpointsElsewhere) this.#db.run(pragma);
    this.#place = new DatabasePlace(file);
  }

  statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** Throws, with nothing written, what `work` throws; `service_unavailable` where the file is not in its place. */
  transact<Result>(work: () => Result): Result {
    this.#place.require();
    this.statement("BEGIN IMMEDIATE").run();
    try {
      const result = work();
      this.statement("COMMIT").run();
      return result;
    } catch (error) {
      if (this.#db.inTransaction) this.statement("ROLLBACK").run();
      throw error;
    }
  }

  /** Begins anew while another holds the lock, for `waitMs` at most. */
  async whenUnlocked<Result>(work: () => Result, waitMs: number): Promise<Result> {
    let waitedMs = 0;
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
      try {
        return work();
      } catch (error) {
        if (waitedMs >= waitMs || !isLocked(error)) throw error;
      }
      await Bun.sleep(pauseMs);
      waitedMs += pauseMs;
    }
  }

  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#db.close();
  }
}

function isLocked(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code ?? "");
}
