// Opens a server's database to look at it, whatever its schema: nothing is written, made, or brought up to date.
import { SQL } from "bun";
import type { Database } from "./database.ts";
import { placeOf, startError } from "./open-postgres.ts";
import { isMissingTable } from "./postgres-errors.ts";
import { databaseOf } from "./postgres-pool.ts";

const statementMs = 4_000;

/** Throws as the library does where it cannot be opened. */
export async function openSqliteToRead(file: string): Promise<Database> {
  const db = new SQL({ adapter: "sqlite", filename: file, readonly: true });
  try {
    await db.unsafe("PRAGMA busy_timeout = 1000");
    // The file itself is opened by the first that reads it.
    await db.unsafe("SELECT count(*) FROM sqlite_master");
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Throws a StartError that says what to do, without the URL, which may have a password. */
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
    throw startError(error, placeOf(url));
  }
}

/** Why the server takes no writes of this role, such as a standby; undefined where it does. Changes nothing. */
export async function writeRefusal(url: string): Promise<string | undefined> {
  const db = new SQL(url, {
    ...{ max: 1, database: databaseOf(url), connectionTimeout: 4 },
    connection: { application_name: "headrace doctor", statement_timeout: statementMs, client_encoding: "UTF8" },
  });
  const undo = new Error("only tried");
  try {
    await db.begin(async (tx) => {
      // A server that only reads refuses the statement whether there is a row or not.
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
