// Tells a database that cannot be used now from a fault of ours: the one is 503 and worth a retry, the other is not.
import { SQL } from "bun";
import { GatewayError } from "../domain/errors.ts";

const retryAfterSeconds = 1;

/** Throws `service_unavailable` where the work fails because the database is locked, full, damaged or not there. */
export async function available<Value>(work: Promise<Value> | PromiseLike<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    throw isOutage(error) ? outage(error) : error;
  }
}

function isOutage(error: unknown): error is SQL.SQLiteError {
  return (
    error instanceof SQL.SQLiteError &&
    /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB)/.test(String(error.code))
  );
}

/** The database's own message may quote values: only its code goes on. */
function outage(error: SQL.SQLiteError): GatewayError {
  return new GatewayError("service_unavailable", "The database cannot be used at the moment. Retry in 1 s.", {
    detail: `database: ${String(error.code)}`,
    retryAfterSeconds,
  });
}
