// Classifies PostgreSQL's errors: outages, and connections that were lost before a statement ran.
import { SQL } from "bun";
import { certificateFault } from "../../base/certificate-fault.ts";

/** Returns the SQLSTATE of the server, or else Bun's own code. Undefined for other errors. */
export function postgresCode(error: unknown): string | undefined {
  if (error instanceof SQL.PostgresError) return error.errno ?? error.code;
  // Bun reports certificate errors without the class `PostgresError`.
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && certificateFault.test(code) ? `ERR_POSTGRES_TLS_${code}` : undefined;
}

/**
 * Outages by SQLSTATE: failed or broken connections (08, 28, 3D, Bun's own), resources (53), a shutdown or restart
 * (57P), timeouts (57014 statement, 55P03 lock, 25P03 idle), conflicts (40), a read-only standby (25006), a failing
 * disk (58, XX001, XX002), and prepared statements after a newer replica's migration (0A000, which has no other cause
 * here).
 */
const outages =
  /^(08|28|3D|53|58|40|57P0|57014$|55P03$|25P03$|25006$|XX00[12]$|0A000$|ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME|TLS|QUERY_CANCELLED))/;

export function isPostgresOutage(code: string): boolean {
  return outages.test(code);
}

/** Reports whether an idle pooled connection was lost, as after a restart of the server. */
export function isLostConnection(error: unknown): boolean {
  return /^(ERR_POSTGRES_CONNECTION_CLOSED$|57P0[12]$|08006$|08003$)/.test(postgresCode(error) ?? "");
}

/**
 * Reports whether a failed commit may have succeeded: no answer came, or the server shut down (57P), broke (58, XX) or
 * does not know (40003). Any other error means that nothing was done.
 */
export function mayBeCommitted(error: unknown): boolean {
  const code = postgresCode(error) ?? "";
  return !/^[0-9A-Z]{5}$/.test(code) || /^(08|57P|58|XX|40003)/.test(code);
}

/** Reports whether a statement names a table that the database does not have, as after `DROP SCHEMA`. */
export function isMissingTable(error: unknown): boolean {
  return postgresCode(error) === "42P01";
}

/**
 * Reports whether a newer replica added a column after this connection prepared the statement. The next use prepares it
 * again.
 */
export function isStaleStatement(error: unknown): boolean {
  return postgresCode(error) === "0A000";
}
