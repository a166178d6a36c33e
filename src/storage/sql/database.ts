// The database of records, SQLite or PostgreSQL: opening, migration, and serialized transactions.

import { join } from "node:path";
import { SQL } from "bun";
import { exactMs } from "../../base/clock.ts";
import { fileOf, rememberFile } from "./database-file.ts";
import type { Dialect } from "./migrations.ts";
import { openPostgres } from "./open-postgres.ts";
import { turnsOf } from "./postgres-pool.ts";
import { bringUpToDate } from "./schema.ts";

export { openPostgres };

export type Database = SQL;

export function dialectOf(db: Database): Dialect {
  return db.options.adapter === "postgres" ? "postgres" : "sqlite";
}

/**
 * Runs `work` in a transaction, without writes of any process between its reads and writes. All writes use this, except
 * pure inserts (`adding`) and the ledger's drain. `work` uses only the database. An empty transaction is committed, not
 * rolled back, because on SQLite's one connection it may contain other writes. All accounts share one queue of writers.
 * A change without a rate limit therefore checks first, outside the queue, whether there is anything to change.
 */
export async function writing<Result>(db: Database, work: (tx: Database) => Promise<Result>): Promise<Result> {
  fileOf(db)?.require();
  if (dialectOf(db) === "sqlite") return db.begin("IMMEDIATE", work);
  const transaction = () =>
    db.begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${writersLock})`;
      return await work(tx);
    });
  return turnsOf(db)?.take(transaction) ?? transaction();
}

/** Runs a transaction that writes without reading. On PostgreSQL it skips the queue of writers. */
export async function adding<Result>(db: Database, work: (tx: Database) => Promise<Result>): Promise<Result> {
  fileOf(db)?.require();
  return dialectOf(db) === "sqlite" ? db.begin("IMMEDIATE", work) : db.begin(work);
}

/**
 * Returns the database's own Unix seconds as an SQL expression. Use it for times that processes on several machines
 * compare, because their own clocks may differ.
 */
export function databaseSeconds(db: Database) {
  return dialectOf(db) === "sqlite"
    ? db`CAST(strftime('%s', 'now') AS INTEGER)`
    : db`CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)`;
}

/** Number of the PostgreSQL advisory lock of writers in Headrace's database: `hea` in ASCII, then a number. */
const writersLock = 0x6865_6101;

/** Name of the SQLite file in the data directory. */
export const databaseName = "headrace.db";

/** Milliseconds to wait for other processes that open the same database. */
const openingMs = 5_000;

/**
 * Opens (or creates) the SQLite file, in WAL mode with `synchronous=NORMAL`. A commit survives the death of this
 * process. After a power cut the last commits may be missing, but the file stays consistent.
 */
export async function openDatabase(file: string): Promise<Database> {
  const db = new SQL({ adapter: "sqlite", filename: file, create: true });
  // The timeout is set first, because the next statements may meet another starting process.
  await db.unsafe(`PRAGMA busy_timeout = ${openingMs}`);
  await useWriteAheadLog(db);
  await db.unsafe("PRAGMA synchronous = NORMAL");
  // Overwrites deleted content, such as a stored chat, in the file.
  await db.unsafe("PRAGMA secure_delete = ON");
  await db.begin("IMMEDIATE", (tx) => bringUpToDate(tx, "sqlite"));
  rememberFile(db, file);
  return db;
}

/** Opens a connection to a server's SQLite file, for a process that the server started. */
export async function openBeside(dataDir: string): Promise<Database> {
  const file = join(dataDir, databaseName);
  const db = new SQL({ adapter: "sqlite", filename: file, create: false, readwrite: true });
  await waitBriefly(db);
  await db.unsafe("PRAGMA synchronous = NORMAL");
  rememberFile(db, file);
  return db;
}

/**
 * Sets the journal mode to WAL, with retries: if two connections create the same file, SQLite refuses one immediately,
 * without waiting for the lock.
 */
async function useWriteAheadLog(db: Database): Promise<void> {
  const deadlineMs = exactMs() + openingMs;
  for (;;) {
    try {
      await db.unsafe("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || exactMs() > deadlineMs) throw error;
      await Bun.sleep(10);
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SQL.SQLiteError && String(error.code).startsWith("SQLITE_BUSY");
}

/**
 * Shortens the wait for other programs' locks on SQLite, which waits in the thread that serves requests. Background
 * writes retry. PostgreSQL waits in its own process.
 */
export async function waitBriefly(db: Database): Promise<void> {
  if (dialectOf(db) === "postgres") return;
  await db.unsafe("PRAGMA busy_timeout = 20");
}

/** For tests of code that must not use the database: calls `onUse` for each statement and transaction. */
export function observed(db: Database, onUse: () => void): Database {
  return new Proxy(db, {
    apply(target, self, args) {
      // `db(rows)` only renders values into a statement; a statement is called as a tagged template.
      if (Array.isArray(args[0]) && "raw" in args[0]) onUse();
      return Reflect.apply(target, self, args);
    },
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (name === "begin" || name === "unsafe") onUse();
        return Reflect.apply(value, target, args);
      };
    },
  });
}
