// Opens a PostgreSQL database: reports its faults, and migrates its schema.

import { SQL } from "bun";
import { exactMs } from "../../base/clock.ts";
import { StartError } from "../../base/errors.ts";
import { isPostgresOutage, postgresCode } from "./postgres-errors.ts";
import { databaseOf, openPool, type PoolBounds } from "./postgres-pool.ts";
import { bringUpToDate, requireCurrent } from "./schema.ts";

const oldestServer = 150_000;
/** Number of the advisory lock that a migration holds in Headrace's database. */
const migrationsLock = 0x6865_6102;
/** Maximum milliseconds to wait for another process that migrates. */
const migrationWaitMs = 60_000;
/**
 * Maximum milliseconds to wait for a table's lock. A migration waits for all users of a table, and later users wait for
 * the migration, so it gives up soon and retries.
 */
const tableWaitMs = 2_000;
const migrationTries = 5;
const pauseMs = 500;
/** Milliseconds to wait for a PostgreSQL server that starts at the same time. */
const startWaitMs = 10_000;

export interface PostgresOptions {
  /** Milliseconds to wait for a server that is not up yet. */
  waitMs?: number;
  /** Timeouts of the connection pool. Default: those of `openPool`. */
  bounds?: PoolBounds | undefined;
}

/**
 * Opens a database of PostgreSQL 15 or later, and migrates its schema. Throws a StartError with a remedy, without the
 * URL, which may contain a password.
 */
export function openPostgres(url: string, { waitMs = startWaitMs, bounds }: PostgresOptions = {}): Promise<SQL> {
  return open(url, { waitMs, bounds }, async (db) => {
    for (let tries = 1; ; tries++) {
      try {
        return await migrate(db);
      } catch (error) {
        if (postgresCode(error) !== lockTimeout || tries === migrationTries) throw error;
      }
      await Bun.sleep(pauseMs);
    }
  });
}

/**
 * Opens the database for a command that runs beside a server. Throws a StartError if the schema is of another version.
 */
export function openExistingPostgres(url: string): Promise<SQL> {
  return open(url, { waitMs: 0 }, (db) => requireCurrent(db, "postgres"));
}

async function open(
  url: string,
  { waitMs, bounds }: PostgresOptions & { waitMs: number },
  prepare: (db: SQL) => Promise<void>,
): Promise<SQL> {
  const address = addressOf(url);
  const db = new SQL(url, { max: 1, connectionTimeout: 5, database: databaseOf(url) });
  try {
    requireSupported(await waitForServer(db, waitMs), address);
    await prepare(db);
  } catch (error) {
    throw startError(error, address);
  } finally {
    await db.close({ timeout: 0 });
  }
  return openPool(url, bounds);
}

const lockTimeout = "55P03";

export interface ServerFacts {
  /** The version number, such as 150018. */
  version: number | string;
  encoding: string;
  standby: boolean;
}

/** Retries for a while if the server is missing or still starting. */
async function waitForServer(db: SQL, waitMs: number): Promise<ServerFacts> {
  const giveUpMs = exactMs() + waitMs;
  for (;;) {
    try {
      const facts = await serverFacts(db);
      if (facts) return facts;
    } catch (error) {
      if (!notThereYet.test(postgresCode(error) ?? "") || exactMs() > giveUpMs) throw error;
    }
    await Bun.sleep(pauseMs);
  }
}

export async function serverFacts(db: SQL): Promise<ServerFacts | undefined> {
  const [facts]: ServerFacts[] = await db`
    SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
      pg_is_in_recovery() AS standby`;
  return facts;
}

const notThereYet = /^(57P03|53300|ERR_POSTGRES_CONNECTION_(REFUSED|CLOSED|TIMEOUT))$/;

export function requireSupported(
  { version, encoding, standby }: ServerFacts,
  { server, database }: PostgresAddress,
): void {
  const number = Number(version);
  if (number < oldestServer) {
    throw new StartError(
      `${variable}: the server at ${server} is PostgreSQL ${Math.floor(number / 10_000)}; Headrace needs ${oldestServer / 10_000} or later.`,
    );
  }
  if (encoding !== "UTF8") {
    throw new StartError(
      `${variable}: the database ${database} has the encoding ${encoding}; Headrace needs UTF8. Make another one: CREATE DATABASE headrace ENCODING 'UTF8' TEMPLATE template0.`,
    );
  }
  if (standby) {
    throw new StartError(`${variable}: the server at ${server} is a standby, which takes no writes. Name the primary.`);
  }
}

async function migrate(db: SQL): Promise<void> {
  await db.begin(async (tx) => {
    await tx.unsafe(`SET LOCAL statement_timeout = 0`);
    await tx.unsafe(`SET LOCAL lock_timeout = ${migrationWaitMs}`);
    try {
      await tx`SELECT pg_advisory_xact_lock(${migrationsLock})`;
    } catch (error) {
      if (postgresCode(error) !== lockTimeout) throw error;
      throw new StartError(
        `Another Headrace has been bringing the database up to date for ${migrationWaitMs / 1000} s. Start again when it is done.`,
      );
    }
    await tx.unsafe(`SET LOCAL lock_timeout = ${tableWaitMs}`);
    await bringUpToDate(tx, "postgres");
  });
}

const variable = "HEADRACE_DATABASE_URL";

export interface PostgresAddress {
  /** Host and port. */
  server: string;
  database: string;
  user: string;
}

/** Returns the parts of the URL that may be shown. */
export function addressOf(url: string): PostgresAddress {
  const { hostname, port, username } = new URL(url);
  return {
    server: `${hostname}:${port || "5432"}`,
    database: `“${databaseOf(url)}”`,
    user: `“${decodeURIComponent(username)}”`,
  };
}

/** The server's message may contain a value, so only its code is kept. */
export function startError(error: unknown, address: PostgresAddress): unknown {
  const code = postgresCode(error);
  const what = code === undefined ? undefined : problem(code, address);
  return what === undefined ? error : new StartError(`${variable}: ${what} (${code})`);
}

/** Describes a fault that an operator can mend. Returns undefined for a fault of the gateway itself. */
function problem(code: string, { server, database, user }: PostgresAddress): string | undefined {
  if (/^28/.test(code)) {
    return `the server at ${server} does not let the user ${user} in: check user and password, and pg_hba.conf of the server.`;
  }
  if (code === "3D000") {
    return `there is no database ${database} at ${server}. Make it, as an administrator of the server: createdb --owner USER DATABASE.`;
  }
  if (code === "53300") {
    return `the server at ${server} has no connection left. Each Headrace takes up to 10: raise max_connections, or see in pg_stat_activity who holds them.`;
  }
  if (code === "42501") {
    return `the user ${user} may not make tables in the database ${database}. Let it own the database: ALTER DATABASE … OWNER TO ….`;
  }
  if (code === lockTimeout) {
    return `the schema of ${database} could not be brought up to date, as somebody uses a table for long. Look into pg_stat_activity, and start again.`;
  }
  if (/^ERR_POSTGRES_TLS/.test(code)) {
    return `no TLS connection can be made to the server at ${server}: check sslmode, and the server's certificate: its name, its end, and who issued it. NODE_EXTRA_CA_CERTS names the file of an authority of your own.`;
  }
  if (/^ERR_POSTGRES_CONNECTION|^57P03/.test(code)) {
    return `no PostgreSQL answers at ${server}. Is it running, and can it be reached from here?`;
  }
  return isPostgresOutage(code) ? `the server at ${server} cannot be used at the moment.` : undefined;
}
