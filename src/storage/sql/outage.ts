// Distinguishes a database outage, which is 503 and worth a retry, from a fault of the gateway.
import { SQL } from "bun";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { adding, type Database, writing } from "./database.ts";
import { isPostgresOutage, postgresCode } from "./postgres-errors.ts";

const retryAfterSeconds = 1;

/**
 * Waits for `work`. Throws `service_unavailable` if the database is locked, full, damaged or away, and
 * `invalid_request` if it cannot store a text.
 */
export async function available<Value>(work: Promise<Value> | PromiseLike<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    throw translated(error);
  }
}

/**
 * Runs `work` in a transaction without concurrent writes. Throws `service_unavailable` if the database is away, and
 * `invalid_request` if it cannot store a text.
 */
export function written<Result>(db: Database, work: (tx: Database) => PromiseLike<Result>): Promise<Result> {
  return available(writing(db, async (tx) => await work(tx)));
}

/**
 * Runs `work`, which must not read, in a transaction. Throws `service_unavailable` if the database is away, and
 * `invalid_request` if it cannot store a text.
 */
export function added<Result>(db: Database, work: (tx: Database) => PromiseLike<Result>): Promise<Result> {
  return available(adding(db, async (tx) => await work(tx)));
}

const laterSeconds = 5;

/**
 * Throws `service_unavailable` for every failure, because errors must not quote the content of clients. `what` names
 * the content, such as "Stored chats". A text that the database cannot store is `invalid_request`.
 */
export async function reached<Value>(what: string, work: Promise<Value> | PromiseLike<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    const known = translated(error);
    if (known instanceof GatewayError && known.code === "invalid_request") throw known;
    throw new GatewayError(
      "service_unavailable",
      `${what} cannot be reached at the moment. Retry in ${laterSeconds} s.`,
      {
        detail: `database: ${databaseErrorCode(error)}`,
        retryAfterSeconds: laterSeconds,
      },
    );
  }
}

function databaseErrorCode(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(postgresCode(error) ?? code ?? name ?? "unknown");
}

/** The database's message may quote values, so only its code is kept. */
export function translated(error: unknown): unknown {
  const code = error instanceof SQL.SQLiteError ? String(error.code) : postgresCode(error);
  // PostgreSQL neither stores U+0000 in texts nor compares with it.
  if (code === "22021") {
    return invalidRequest("A text has the character U+0000, which cannot be stored. Leave it out.");
  }
  if (code === undefined || !(sqliteOutages.test(code) || isPostgresOutage(code))) return error;
  return new GatewayError("service_unavailable", "The database cannot be used at the moment. Retry in 1 s.", {
    detail: `database: ${code}`,
    retryAfterSeconds,
  });
}

const sqliteOutages = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB)/;
