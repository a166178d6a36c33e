// Opens the database and brings its schema up to date.
import { SQL } from "bun";
import { StartError } from "../domain/errors.ts";
import { migrations } from "./migrations.ts";

export type Database = SQL;

/**
 * Opens (or creates) the SQLite file. WAL with `synchronous=NORMAL`: a commit survives the death of this process; after a
 * power cut the last commits may be missing, the file stays sound.
 */
export async function openDatabase(file: string): Promise<Database> {
  const db = new SQL({ adapter: "sqlite", filename: file, create: true });
  // First of all: what follows already may meet another process that starts.
  await db.unsafe("PRAGMA busy_timeout = 5000");
  await db.unsafe("PRAGMA journal_mode = WAL");
  await db.unsafe("PRAGMA synchronous = NORMAL");
  // What is deleted, such as a stored chat, is gone from the file as well.
  await db.unsafe("PRAGMA secure_delete = ON");
  await migrate(db);
  return db;
}

/**
 * From here on a lock that another program holds fails a statement soon: SQLite waits in the thread that serves all
 * requests. What writes in the background tries again.
 */
export async function waitBriefly(db: Database): Promise<void> {
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

/** In one write transaction from the first look on, so that of several starts at once one migrates and the others see it. */
async function migrate(db: Database): Promise<void> {
  await db.begin("IMMEDIATE", async (tx) => {
    await tx`CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)`;
    const [row] = await tx`SELECT max(version) AS version FROM schema_migrations`;
    const current = Number(row?.version ?? 0);
    if (current > migrations.length) {
      throw new StartError(
        `The database has schema version ${current}, this Headrace knows ${migrations.length}: start the newer Headrace that wrote it.`,
      );
    }
    for (let version = current + 1; version <= migrations.length; version++) {
      for (const statement of migrations[version - 1] ?? []) await tx.unsafe(statement);
      await tx`INSERT INTO schema_migrations (version, applied_at) VALUES (${version}, ${Math.floor(Date.now() / 1000)})`;
    }
  });
}
