// The database of records, SQLite or PostgreSQL: opened, brought up to date, written in transactions that never cross.

import { join } from "node:path";
import { SQL } from "bun";
import { exactMs } from "../../base/clock.ts";
import { placeOf, rememberPlace } from "./database-place.ts";
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
 * Runs `work` in a transaction in which nobody else's write comes between what it reads and what it writes: one at a time,
 * over all processes. All writes go through here, but for what only adds rows (`adding`) and the ledger's drain. `work`
 * touches nothing but the database. An empty transaction is committed, not rolled back: on SQLite's one connection, what
 * others write meanwhile is in it.
 *
 * The turns of all accounts stand in one queue. A change that no limit bounds therefore reads first, without a turn, whether
 * there is anything to change.
 */
export async function writing<Result>(db: Database, work: (tx: Database) => Promise<Result>): Promise<Result> {
  placeOf(db)?.require();
  if (dialectOf(db) === "sqlite") return db.begin("IMMEDIATE", work);
  const transaction = () =>
    db.begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${writersLock})`;
      return await work(tx);
    });
  return turnsOf(db)?.take(transaction) ?? transaction();
}

/** A transaction that reads nothing before it writes, and so needs no turn of its own where many may write at once. */
export async function adding<Result>(db: Database, work: (tx: Database) => Promise<Result>): Promise<Result> {
  placeOf(db)?.require();
  return dialectOf(db) === "sqlite" ? db.begin("IMMEDIATE", work) : db.begin(work);
}

/**
 * Unix seconds by the database's own clock, as a part of a statement: what processes on several machines compare must not
 * depend on theirs.
 */
export function databaseSeconds(db: Database) {
  return dialectOf(db) === "sqlite"
    ? db`CAST(strftime('%s', 'now') AS INTEGER)`
    : db`CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)`;
}

/** Number of an advisory lock of PostgreSQL, within the database of Headrace: `hea` in ASCII, and a number. */
const writersLock = 0x6865_6101;

/** In the data directory. */
export const databaseName = "headrace.db";

/** How long an opening waits for others that do the same. */
const openingMs = 5_000;

/**
 * Opens (or creates) the SQLite file. WAL with `synchronous=NORMAL`: a commit survives the death of this process; after a
 * power cut the last commits may be missing, the file stays sound.
 */
export async function openDatabase(file: string): Promise<Database> {
  const db = new SQL({ adapter: "sqlite", filename: file, create: true });
  // This comes first: what follows already may meet another process that starts.
  await db.unsafe(`PRAGMA busy_timeout = ${openingMs}`);
  await useWriteAheadLog(db);
  await db.unsafe("PRAGMA synchronous = NORMAL");
  // What is deleted, such as a stored chat, is gone from the file as well.
  await db.unsafe("PRAGMA secure_delete = ON");
  await db.begin("IMMEDIATE", (tx) => bringUpToDate(tx, "sqlite"));
  rememberPlace(db, file);
  return db;
}

/** A connection to the SQLite file of a server, for a process that it has started beside itself. */
export async function openBeside(dataDir: string): Promise<Database> {
  const file = join(dataDir, databaseName);
  const db = new SQL({ adapter: "sqlite", filename: file, create: false, readwrite: true });
  await waitBriefly(db);
  await db.unsafe("PRAGMA synchronous = NORMAL");
  rememberPlace(db, file);
  return db;
}

/** Where two connections make the same new file, one is refused at once, however long it would wait for a lock. */
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
 * From here on a lock that another program holds fails a statement soon: SQLite waits in the thread that serves all
 * requests. What writes in the background tries again. PostgreSQL waits elsewhere.
 */
export async function waitBriefly(db: Database): Promise<void> {
  if (dialectOf(db) === "postgres") return;
  await db.unsafe("PRAGMA busy_timeout = 20");
}

/** The same database, telling of each statement and transaction; a test shows with it what reads nothing. */
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
