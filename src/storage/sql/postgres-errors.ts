// What PostgreSQL's errors mean to us: whether it is away, whether a connection was lost before anything was done by it.
import { SQL } from "bun";

/** SQLSTATE where the server said it, else Bun's own code; undefined: no error of PostgreSQL. */
export function postgresCode(error: unknown): string | undefined {
  if (error instanceof SQL.PostgresError) return error.errno ?? error.code;
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && certificateFault.test(code) ? `ERR_POSTGRES_TLS_${code}` : undefined;
}

/** What OpenSSL says against a certificate, or Bun against the name in it: no errors of PostgreSQL's own to Bun. */
const certificateFault = /CERT_|_CERT$|_CERT_LOCALLY$|UNABLE_TO_(?:VERIFY|GET)_|ALTNAME_INVALID$/;

/**
 * Connections that cannot be made or broke (08, 28, 3D, Bun's own), resources (53), ended by an operator or a restart (57P),
 * a time that was exceeded (57014 statement, 55P03 lock, 25P03 idle), others in the way (40), a standby that takes no
 * writes (25006), a disk that fails (58, XX001, XX002), and what a newer replica's migration has made of a prepared
 * statement (0A000, of which we use nothing else).
 */
const outages =
  /^(08|28|3D|53|58|40|57P0|57014$|55P03$|25P03$|25006$|XX00[12]$|0A000$|ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME|TLS|QUERY_CANCELLED))/;

export function isPostgresOutage(code: string): boolean {
  return outages.test(code);
}

/** What a pooled connection fails with that broke while nobody used it, as after a restart of the server. */
export function isLostConnection(error: unknown): boolean {
  return /^(ERR_POSTGRES_CONNECTION_CLOSED$|57P0[12]$|08006$|08003$)/.test(postgresCode(error) ?? "");
}

/**
 * Whether what failed so may have been committed all the same: no answer came, or the last word of a server that ends (57P),
 * breaks (58, XX) or does not know it itself (40003). Any other error is the server's word that nothing was done.
 */
export function mayBeCommitted(error: unknown): boolean {
  const code = postgresCode(error) ?? "";
  return !/^[0-9A-Z]{5}$/.test(code) || /^(08|57P|58|XX|40003)/.test(code);
}

/** Reports whether a statement names a table that the database does not have, as after `DROP SCHEMA`. */
export function isMissingTable(error: unknown): boolean {
  return postgresCode(error) === "42P01";
}

/** A statement that this connection prepared before a newer replica added a column; it is prepared anew the next time. */
export function isStaleStatement(error: unknown): boolean {
  return postgresCode(error) === "0A000";
}
