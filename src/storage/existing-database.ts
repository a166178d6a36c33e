// Opens a server's database for a command beside it: never makes one, never brings its schema up to date.
import { existsSync } from "node:fs";
import { SQL } from "bun";
import { StartError } from "../domain/errors.ts";
import type { Database } from "./database.ts";
import { migrationsFor } from "./migrations.ts";

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
    const version = await schemaVersion(db);
    if (version === migrationsFor("sqlite").length) return db;
    throw new StartError(
      version > migrationsFor("sqlite").length
        ? `The database has schema version ${version}, this Headrace knows ${migrationsFor("sqlite").length}: use the newer Headrace that wrote it.`
        : `The database has schema version ${version}, this Headrace needs ${migrationsFor("sqlite").length}: start the server again with this Headrace, which brings it up to date.`,
    );
  } catch (error) {
    await db.close();
    if (!(error instanceof SQL.SQLiteError)) throw error;
    throw new StartError(`The database ${file} cannot be read: ${error.message}`, { cause: error });
  }
}

/** 0 for a file in which nothing was ever made. */
async function schemaVersion(db: Database): Promise<number> {
  const tables: unknown[] = await db`SELECT name FROM sqlite_master WHERE name = 'schema_migrations'`;
  if (tables.length === 0) return 0;
  const [row] = await db`SELECT max(version) AS version FROM schema_migrations`;
  return Number(row?.version ?? 0);
}
