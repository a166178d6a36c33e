// Opens a server's database for a command beside it: never makes one, never brings its schema up to date.
import { existsSync } from "node:fs";
import { SQL } from "bun";
import { StartError } from "../domain/errors.ts";
import { type Database, dialectOf } from "./database.ts";
import { migrationsFor } from "./migrations.ts";
import { postgresCode } from "./postgres-errors.ts";

/** Throws a StartError where there is none, or one of another version: a server that runs would lose its own from under it. */
export async function openExistingDatabase(file: string): Promise<Database> {
  if (!existsSync(file)) {
    throw new StartError(
      `There is no database ${file} yet: start the server once with \`headrace serve\`, or name its data directory with --data-dir.`,
    );
  }
  const db = new SQL({ adapter: "sqlite", filename: file, create: false });
  try {
    await db.unsafe("PRAGMA busy_timeout = 5000");
    await requireOwnVersion(db);
    return db;
  } catch (error) {
    await db.close();
    if (!(error instanceof SQL.SQLiteError)) throw error;
    throw new StartError(`The database ${file} cannot be read: ${error.message}`, { cause: error });
  }
}

/** Likewise of PostgreSQL. Never puts the URL into an error: it has a password. */
export async function openExistingPostgres(url: string): Promise<Database> {
  const db = new SQL(url, { max: 2, connectionTimeout: 5 });
  try {
    await requireOwnVersion(db);
    return db;
  } catch (error) {
    await db.close({ timeout: 0 });
    if (error instanceof StartError) throw error;
    throw new StartError(
      `The database at HEADRACE_DATABASE_URL cannot be read (${postgresCode(error) ?? "no answer"}). See that it runs, and that host, user and password are right.`,
    );
  }
}

async function requireOwnVersion(db: Database): Promise<void> {
  const version = await schemaVersion(db);
  const own = migrationsFor("sqlite").length;
  if (version === own) return;
  throw new StartError(
    version > own
      ? `The database has schema version ${version}, this Headrace knows ${own}: use the newer Headrace that wrote it.`
      : `The database has schema version ${version}, this Headrace needs ${own}: start the server again with this Headrace, which brings it up to date.`,
  );
}

/** 0 for a database in which nothing was ever made. */
async function schemaVersion(db: Database): Promise<number> {
  const tables: unknown[] =
    dialectOf(db) === "sqlite"
      ? await db`SELECT name FROM sqlite_master WHERE name = 'schema_migrations'`
      : await db`SELECT relname AS name FROM pg_class WHERE oid = to_regclass('schema_migrations')`;
  if (tables.length === 0) return 0;
  const [row] = await db`SELECT max(version) AS version FROM schema_migrations`;
  return Number(row?.version ?? 0);
}
