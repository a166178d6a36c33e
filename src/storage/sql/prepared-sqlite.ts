// A separate connection to a SQLite file, with statements that are prepared once. It waits for locks outside of SQLite.
import { SQLiteError, Database as Sqlite, type Statement } from "bun:sqlite";
import { checkpointsElsewhere } from "./checkpointer.ts";
import { DatabaseFile } from "./database-file.ts";

const maxPauseMs = 16;

/**
 * A transaction runs within one call, so no other code of this process interleaves. Waits for locks outside of SQLite,
 * whose own wait would block the thread that serves requests. Other transactions that read before they write must begin
 * with IMMEDIATE: otherwise a commit of this connection in between makes them fail.
 */
export class PreparedSqlite {
  readonly #db: Sqlite;
  readonly #file: DatabaseFile;
  readonly #statements = new Map<string, Statement>();

  constructor(file: string) {
    this.#db = new Sqlite(file, { readwrite: true });
    this.#db.run("PRAGMA busy_timeout = 0");
    // Use the settings of the main connection. The journal mode belongs to the file.
    this.#db.run("PRAGMA synchronous = NORMAL");
    for (const pragma of checkpointsElsewhere) this.#db.run(pragma);
    this.#file = new DatabaseFile(file);
  }

  statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /**
   * Runs `work` in a transaction. If `work` throws, nothing changes and its error is rethrown. Throws
   * `service_unavailable` if the database file was moved or replaced.
   */
  transact<Result>(work: () => Result): Result {
    this.#file.require();
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

  /** Retries while another connection holds the lock, at most for `waitMs`. */
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
