// Writes usage into the database: records and their roll-ups, in one transaction.

import { SQLiteError, type SQLQueryBindings, Database as Sqlite, type Statement } from "bun:sqlite";
import type { UsageRecord } from "../domain/usage.ts";
import { type Database, dialectOf } from "./database.ts";
import { databaseFile } from "./durable-commits.ts";
import { PostgresUsageWriter } from "./postgres-usage-writer.ts";
import { requestsKeptFrom } from "./retention-store.ts";
import { groupUsage, rollUp, rollupColumns, type UsageGroup } from "./usage-groups.ts";
import { keptRecords, type UsageWriter } from "./usage-rows.ts";

export type { UsageWriter };

export async function openUsageWriter(db: Database): Promise<UsageWriter> {
  if (dialectOf(db) === "postgres") return new PostgresUsageWriter(db);
  const file = await databaseFile(db);
  if (file === undefined) throw new Error("The database is in memory, where usage would not outlive the process.");
  return new SqliteUsageWriter(file);
}

/** Of a record: those that are its own, and those that many of a batch have in common. */
const ownColumns = [
  "request_id",
  "at",
  "prompt_tokens",
  "completion_tokens",
  "nano_usd",
  "duration_ms",
  "first_token_ms",
  "queue_ms",
];
const groupColumns = [
  "account_id",
  "key_id",
  "app_id",
  "environment",
  "operation",
  "model",
  "stream",
  "outcome",
  "error_code",
  "estimated",
  "capped",
  "upstream",
];
/** Rows of one statement, largest first: the more, the fewer calls and bindings. */
const rowCounts = [64, 8, 1];
const lockWaitMs = 60;
const longestPauseMs = 16;

/**
 * On a connection of its own, with statements that are prepared once. A transaction begins and ends within one call, so
 * nothing else of this process comes between, and what holds the lock is waited for outside of SQLite, which would wait
 * in the thread that serves requests. Everybody else who reads before writing must begin with IMMEDIATE: else a commit
 * of this one in the middle of it makes it fail.
 */
class SqliteUsageWriter implements UsageWriter {
  readonly #db: Sqlite;
  readonly #statements = new Map<string, Statement>();
  #tooOld = 0;
  /** One for each number of rows; filled anew for each statement. */
  readonly #bindings = rowCounts.map(
    (rows) => new Array<SQLQueryBindings>(groupColumns.length + rows * ownColumns.length),
  );

  constructor(file: string) {
    this.#db = new Sqlite(file, { readwrite: true });
    this.#db.run("PRAGMA busy_timeout = 0");
    // As on the other connection. The journal mode is the file's.
    this.#db.run("PRAGMA synchronous = NORMAL");
  }

  get tooOld(): number {
    return this.#tooOld;
  }

  async insert(records: readonly UsageRecord[], waitMs = lockWaitMs): Promise<number> {
    let waitedMs = 0;
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        return this.#insert(records);
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

  #insert(given: readonly UsageRecord[]): number {
    let records = given;
    // Within the transaction: from then on, what deletes older ones comes after.
    const add = (choose: (records: readonly UsageRecord[]) => readonly UsageRecord[]) =>
      this.#transact(() => {
        records = this.#kept(given);
        return this.#add(choose(records));
      });
    let added: number;
    try {
      added = add((all) => all);
    } catch (error) {
      if (!isRepetition(error)) throw error;
      added = add((all) => this.#unknown(all));
    }
    this.#tooOld += given.length - records.length;
    return added;
  }

  #kept(records: readonly UsageRecord[]): readonly UsageRecord[] {
    const row = this.#statement("SELECT value FROM installation WHERE name = ?").get(requestsKeptFrom) as {
      value: string;
    } | null;
    return keptRecords(records, row?.value);
  }

  #transact(work: () => number): number {
    this.#statement("BEGIN IMMEDIATE").run();
    try {
      const count = work();
      this.#statement("COMMIT").run();
      return count;
    } catch (error) {
      if (this.#db.inTransaction) this.#statement("ROLLBACK").run();
      throw error;
    }
  }

  #add(records: readonly UsageRecord[]): number {
    if (records.length === 0) return 0;
    const groups = groupUsage(records);
    for (const group of groups) this.#addRecords(group);
    const add = this.#statement(addToRollup);
    for (const row of rollUp(groups)) add.run(row);
    return records.length;
  }

  #addRecords(group: UsageGroup): void {
    let from = 0;
    for (const [i, rows] of rowCounts.entries()) {
      const bindings = this.#bindings[i] ?? [];
      for (; group.records.length - from >= rows; from += rows) {
        bind(bindings, group, from, rows);
        this.#statement(addRecords[i] ?? "").run(bindings);
      }
    }
  }

  /** Those that are not in the database, each once. */
  #unknown(records: readonly UsageRecord[]): UsageRecord[] {
    const find = this.#statement("SELECT 1 FROM usage_records WHERE request_id = ?");
    const seen = new Set<string>();
    return records.filter(({ requestId }) => {
      if (seen.has(requestId) || find.get(requestId) !== null) return false;
      seen.add(requestId);
      return true;
    });
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

const addRecords = rowCounts.map((rows) => {
  const common = groupColumns.map((_, column) => `?${column + 1}`);
  const values = Array.from({ length: rows }, (_, row) => {
    const first = groupColumns.length + row * ownColumns.length + 1;
    return `(${[...common, ...ownColumns.map((_column, i) => `?${first + i}`)].join(", ")})`;
  });
  return `INSERT INTO usage_records (${[...groupColumns, ...ownColumns].join(", ")}) VALUES ${values.join(", ")}`;
});

const addToRollup = (() => {
  const { key, sums, times } = rollupColumns;
  const columns = [...key, ...sums, ...times];
  const added = sums.map((column) => `${column} = ${column} + excluded.${column}`);
  return `
    INSERT INTO usage_rollups (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})
    ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${added.join(", ")},
      first_at = CASE WHEN excluded.first_at < first_at THEN excluded.first_at ELSE first_at END,
      last_at = CASE WHEN excluded.last_at > last_at THEN excluded.last_at ELSE last_at END`;
})();

/** In the order of `groupColumns`, then for each row in that of `ownColumns`. */
function bind(bindings: SQLQueryBindings[], { common, records }: UsageGroup, from: number, rows: number): void {
  let i = 0;
  bindings[i++] = common.accountId;
  bindings[i++] = common.keyId;
  bindings[i++] = common.appId;
  bindings[i++] = common.environment;
  bindings[i++] = common.operation;
  bindings[i++] = common.model;
  bindings[i++] = common.stream ? 1 : 0;
  bindings[i++] = common.outcome;
  bindings[i++] = common.errorCode;
  bindings[i++] = common.estimated ? 1 : 0;
  bindings[i++] = common.capped ? 1 : 0;
  bindings[i++] = common.upstream;
  for (let row = from; row < from + rows; row++) {
    const record = records[row];
    if (record === undefined) return;
    bindings[i++] = record.requestId;
    bindings[i++] = record.at;
    bindings[i++] = record.promptTokens;
    bindings[i++] = record.completionTokens;
    bindings[i++] = record.nanoUsd;
    bindings[i++] = record.durationMs;
    bindings[i++] = record.firstTokenMs;
    bindings[i++] = record.queueMs;
  }
}

function isLocked(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code ?? "");
}

function isRepetition(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)$/.test(error.code ?? "");
}
