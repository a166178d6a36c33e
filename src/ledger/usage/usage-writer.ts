// Opens the usage writer of a database. The one for SQLite is here: it writes records and roll-ups in one transaction.

import { SQLiteError, type SQLQueryBindings } from "bun:sqlite";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { type Database, dialectOf } from "../../storage/sql/database.ts";
import { databaseFile } from "../../storage/sql/durable-commits.ts";
import { PreparedSqlite } from "../../storage/sql/prepared-sqlite.ts";
import { requestsKeptFrom } from "../../storage/tables/retention-store.ts";
import { tagsText } from "../../storage/tables/tags-text.ts";
import { PostgresUsageWriter } from "./postgres-usage-writer.ts";
import { addToTotals, SqliteRollups } from "./sqlite-rollups.ts";
import {
  at,
  cachedTokens,
  cacheWriteTokens,
  completionTokens,
  durationMs,
  firstTokenMs,
  nanoUsd,
  promptTokens,
  queueMs,
  reasoningTokens,
  type UsageColumns,
} from "./usage-columns.ts";
import type { UsageKind } from "./usage-kinds.ts";
import { catchUp, columnsOf, keptUsage, type UsageWriter } from "./usage-rows.ts";
import { totalsOf } from "./usage-totals.ts";

export type { UsageWriter };

export interface UsageWriterOptions {
  /**
   * True if no other process adds usage to this SQLite database. False for a command beside a running server; it
   * updates roll-ups at once and leaves collected sums to the server. Default: true.
   */
  isAlone?: boolean;
  /**
   * Id of the installation that the usage belongs to. Another installation's PostgreSQL database is refused. Default:
   * the id in the database.
   */
  installation?: string | undefined;
  clock?: Pick<Clock, "monotonicMs">;
}

export async function openUsageWriter(
  db: Database,
  { isAlone = true, installation, clock = systemClock }: UsageWriterOptions = {},
): Promise<UsageWriter> {
  if (dialectOf(db) === "postgres") return await PostgresUsageWriter.open(db, installation);
  const file = await databaseFile(db);
  if (file === undefined) throw new Error("The database is in memory, where usage would not outlive the process.");
  const writer = new SqliteUsageWriter(file, isAlone, clock);
  if (!isAlone) return writer;
  try {
    await writer.rollups.recover(openingLockWaitMs);
    await catchUp(writer, openingLockWaitMs);
    return writer;
  } catch (error) {
    writer.close();
    throw error;
  }
}

/** The columns of `usage_records`: those of each record, and those of its kind, which many records share. */
const ownColumns = [
  "request_id",
  "at",
  "account_id",
  "key_id",
  "app_id",
  "prompt_tokens",
  "completion_tokens",
  "nano_usd",
  "duration_ms",
  "first_token_ms",
  "queue_ms",
  "cached_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
];
const kindColumns = [
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
/** The numbers of rows in one INSERT statement, largest first. More rows mean fewer calls. */
const rowCounts = [64, 8, 1];
const lockWaitMs = 60;
/** Milliseconds for which the start waits for another program's database lock. */
const openingLockWaitMs = 5_000;

class SqliteUsageWriter implements UsageWriter {
  readonly rollups: SqliteRollups;
  readonly #db: PreparedSqlite;
  #tooOld = 0;
  /** Reused arrays of bound values, one for each statement in `rowCounts`. */
  readonly #bindings = rowCounts.map(
    (rows) => new Array<SQLQueryBindings>(kindColumns.length + rows * ownColumns.length),
  );

  constructor(file: string, isAlone: boolean, clock: Pick<Clock, "monotonicMs">) {
    this.#db = new PreparedSqlite(file);
    this.rollups = new SqliteRollups(this.#db, isAlone, clock);
  }

  get tooOld(): number {
    return this.#tooOld;
  }

  async insert(given: UsageColumns | readonly UsageRecord[], waitMs = lockWaitMs): Promise<number> {
    const usage = columnsOf(given);
    return this.#db.whenUnlocked(() => this.#insert(usage), waitMs);
  }

  close(): void {
    this.#db.close();
  }

  #insert(given: UsageColumns): number {
    let kept = given;
    // Filter within the transaction, so that no concurrent deletion of older records is missed.
    const add = (choose: (usage: UsageColumns) => UsageColumns) =>
      this.#db.transact(() => {
        kept = this.#kept(given);
        return this.#add(choose(kept));
      });
    let added: number;
    try {
      added = add((all) => all);
    } catch (error) {
      if (!isRepetition(error)) throw error;
      added = add((all) => this.#unknown(all));
    }
    this.rollups.committed();
    this.#tooOld += given.length - kept.length;
    return added;
  }

  #kept(usage: UsageColumns): UsageColumns {
    const row = this.#db.statement("SELECT value FROM installation WHERE name = ?").get(requestsKeptFrom) as {
      value: string;
    } | null;
    return keptUsage(usage, row?.value);
  }

  #add(usage: UsageColumns): number {
    this.rollups.add(usage);
    for (const row of totalsOf(usage)) this.#db.statement(addToTotals).run(row);
    for (const [kind, rows] of rowsByKind(usage)) this.#addRecords(usage, kind, rows);
    // Attempt logs (trails) are written separately, because few records have one.
    for (const [row, trail] of usage.trails) {
      this.#db
        .statement("UPDATE usage_records SET trail = ? WHERE request_id = ?")
        .run([trail, usage.requestIds[row] ?? ""]);
    }
    for (const [row, tags] of usage.tags) {
      this.#db
        .statement("UPDATE usage_records SET tags = ? WHERE request_id = ?")
        .run([tagsText(tags), usage.requestIds[row] ?? ""]);
    }
    for (const [row, details] of usage.details) {
      this.#db
        .statement("UPDATE usage_records SET details = ? WHERE request_id = ?")
        .run([details, usage.requestIds[row] ?? ""]);
    }
    this.#queueForExport(usage);
    return usage.length;
  }

  #queueForExport({ requestIds, length }: UsageColumns): void {
    if (this.#db.statement("SELECT 1 FROM export_sinks WHERE requests = 1 LIMIT 1").get() === null) return;
    const queue = this.#db.statement(
      "INSERT INTO export_queue (record_id, kind, queued_at) VALUES (?, 'requests', CAST(strftime('%s', 'now') AS INTEGER))",
    );
    for (let row = 0; row < length; row++) queue.run([requestIds[row] ?? ""]);
  }

  #addRecords(usage: UsageColumns, kind: UsageKind, rows: readonly number[]): void {
    let from = 0;
    for (const [i, count] of rowCounts.entries()) {
      const bindings = this.#bindings[i] ?? [];
      if (rows.length - from >= count) bindKind(bindings, kind);
      for (; rows.length - from >= count; from += count) {
        bindRows(bindings, usage, rows, from, count);
        this.#db.statement(addRecords[i] ?? "").run(bindings);
      }
    }
  }

  /** Returns the records that are not in the database, without duplicates. */
  #unknown(usage: UsageColumns): UsageColumns {
    const find = this.#db.statement("SELECT 1 FROM usage_records WHERE request_id = ?");
    const seen = new Set<string>();
    return usage.filter((row) => {
      const requestId = usage.requestIds[row] ?? "";
      if (seen.has(requestId) || find.get(requestId) !== null) return false;
      seen.add(requestId);
      return true;
    });
  }
}

const addRecords = rowCounts.map((rows) => {
  const common = kindColumns.map((_, column) => `?${column + 1}`);
  const values = Array.from({ length: rows }, (_, row) => {
    const first = kindColumns.length + row * ownColumns.length + 1;
    return `(${[...common, ...ownColumns.map((_column, i) => `?${first + i}`)].join(", ")})`;
  });
  return `INSERT INTO usage_records (${[...kindColumns, ...ownColumns].join(", ")}) VALUES ${values.join(", ")}`;
});

/** Groups rows by kind, in their original order. */
function rowsByKind(usage: UsageColumns): Map<UsageKind, number[]> {
  const byKind = new Map<UsageKind, number[]>();
  for (let row = 0; row < usage.length; row++) {
    const kind = usage.kindAt(row);
    const rows = byKind.get(kind);
    if (rows === undefined) byKind.set(kind, [row]);
    else rows.push(row);
  }
  return byKind;
}

/** Writes the values of a kind into `bindings`, in the order of `kindColumns`. */
function bindKind(bindings: SQLQueryBindings[], kind: UsageKind): void {
  const { request } = kind;
  bindings[0] = request.environment;
  bindings[1] = request.operation;
  bindings[2] = request.model;
  bindings[3] = request.stream ? 1 : 0;
  bindings[4] = kind.outcome;
  bindings[5] = kind.errorCode;
  bindings[6] = kind.estimated ? 1 : 0;
  bindings[7] = kind.capped ? 1 : 0;
  bindings[8] = kind.upstream;
}

/** Writes the values of `count` rows into `bindings`, in the order of `ownColumns`. */
function bindRows(
  bindings: SQLQueryBindings[],
  usage: UsageColumns,
  rows: readonly number[],
  from: number,
  count: number,
): void {
  let i = kindColumns.length;
  for (let nth = from; nth < from + count; nth++) {
    const row = rows[nth] ?? 0;
    bindings[i++] = usage.requestIds[row] ?? "";
    bindings[i++] = usage.number(row, at);
    bindings[i++] = usage.accountIds[row] ?? "";
    bindings[i++] = usage.keyIds[row] ?? "";
    bindings[i++] = usage.appIds[row] ?? null;
    bindings[i++] = usage.number(row, promptTokens);
    bindings[i++] = usage.number(row, completionTokens);
    bindings[i++] = usage.numberOrNull(row, nanoUsd);
    bindings[i++] = usage.number(row, durationMs);
    bindings[i++] = usage.numberOrNull(row, firstTokenMs);
    bindings[i++] = usage.number(row, queueMs);
    bindings[i++] = usage.number(row, cachedTokens);
    bindings[i++] = usage.number(row, cacheWriteTokens);
    bindings[i++] = usage.number(row, reasoningTokens);
  }
}

function isRepetition(error: unknown): boolean {
  return error instanceof SQLiteError && /^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)$/.test(error.code ?? "");
}
