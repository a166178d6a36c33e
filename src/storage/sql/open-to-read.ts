// Opens a server's database to read it with any schema. Nothing is written, created or migrated.
import { SQL } from "bun";
import type { Database } from "./database.ts";
import { addressOf, startError } from "./open-postgres.ts";
import { isMissingTable } from "./postgres-errors.ts";
import { databaseOf } from "./postgres-pool.ts";

const statementMs = 4_000;

/** Opens a SQLite file to read it. Throws Bun's own error if the file cannot be opened. */
export async function openSqliteToRead(file: string): Promise<Database> {
  const db = new SQL({ adapter: "sqlite", filename: file, readonly: true });
  try {
    await db.unsafe("PRAGMA busy_timeout = 1000");
    // The first read opens the file.
    await db.unsafe("SELECT count(*) FROM sqlite_master");
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Throws a StartError with a remedy and without the URL, which may contain a password. */
export async function openPostgresToRead(url: string): Promise<Database> {
  const db = new SQL(url, {
    max: 1,
    database: databaseOf(url),
    connectionTimeout: 4,
    connection: {
      application_name: "headrace doctor",
      statement_timeout: statementMs,
      default_transaction_read_only: "on",
      client_encoding: "UTF8",
    },
  });
  try {
    await db`SELECT 1`;
    return db;
  } catch (error) {
    await db.close({ timeout: 0 });
    throw startError(error, addressOf(url));
  }
}

/**
 * Returns why the server refuses writes of this role, for example because it is a standby. Undefined if it accepts
 * them. Changes nothing.
 */
export async function writeRefusal(url: string): Promise<string | undefined> {
  const db = new SQL(url, {
    ...{ max: 1, database: databaseOf(url), connectionTimeout: 4 },
    connection: { application_name: "headrace doctor", statement_timeout: statementMs, client_encoding: "UTF8" },
  });
  const undo = new Error("only tried");
  try {
    await db.begin(async (tx) => {
      // A read-only server refuses the statement whether or not there is a row.
      await tx`UPDATE installation SET value = value WHERE name = 'secret_check'`;
      throw undo;
    });
    return undefined;
  } catch (error) {
    if (error === undo || isMissingTable(error)) return undefined;
    return error instanceof Error ? error.message : String(error);
  } finally {
    await db.close({ timeout: 0 });
  }
}
