// Builds indexes of large PostgreSQL tables while servers write to them, which a migration step cannot.

import { SQL } from "bun";
import type { Log } from "../../base/log.ts";
import type { Database } from "./database.ts";
import { concurrentIndexes } from "./migrations.ts";
import { postgresCode } from "./postgres-errors.ts";
import { databaseOf } from "./postgres-pool.ts";

/** Number of the advisory lock of the process that builds. */
const indexesLock = 0x6865_6103;
/** Milliseconds until the next attempt: after a fault, or while another process builds, which may be killed. */
const defaultAgainMs = 60_000;

/**
 * Builds the missing indexes, one after the other. Until then queries that need them are slow or fail. Tries again until
 * all of them are there, or until `close`.
 */
export function buildIndexes(url: string, log: Log, againMs = defaultAgainMs): { close(): void } {
  let open: SQL | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;
  const attempt = async () => {
    const db = new SQL(url, { max: 1, connectionTimeout: 5, database: databaseOf(url) });
    open = db;
    const isDone = await build(db, log).catch((error: unknown) => {
      if (!isClosed) {
        log.warn("indexes_not_built", { detail: postgresCode(error) ?? "unknown", again_in_s: againMs / 1000 });
      }
      return false;
    });
    // The connection may be gone already.
    await db.close({ timeout: 0 }).catch(() => {});
    if (isDone || isClosed) return;
    timer = setTimeout(() => void attempt(), againMs);
    timer.unref();
  };
  void attempt();
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
      // The connection may be gone already.
      void open?.close({ timeout: 0 }).catch(() => {});
    },
  };
}

/** Returns true once each index exists, and false if another process builds. */
async function build(db: SQL, log: Log): Promise<boolean> {
  const indexes = [...concurrentIndexes()];
  const states = await Promise.all(indexes.map(([name]) => stateOf(db, name)));
  if (states.every((state) => state?.valid)) return true;
  const [lock]: { held: boolean }[] = await db`SELECT pg_try_advisory_lock(${indexesLock}) AS held`;
  if (!lock?.held) return false;
  await db.unsafe("SET statement_timeout = 0");
  for (const [name, statement] of indexes) {
    const found = await stateOf(db, name);
    if (found?.valid) continue;
    // An interrupted build leaves an index that writes maintain and no query uses.
    if (found) await db.unsafe(`DROP INDEX CONCURRENTLY ${name}`);
    log.info("index_build_started", { index: name });
    await db.unsafe(statement);
    log.info("index_built", { index: name });
  }
  return true;
}

/** Returns the names of the indexes that are not built, or whose build is not complete. */
export async function missingIndexes(db: Database): Promise<string[]> {
  const names = [...concurrentIndexes().keys()];
  const built: { name: string }[] = await db`
    SELECT relname AS name FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid
    WHERE indisvalid AND relnamespace = to_regnamespace(current_schema())`;
  return names.filter((name) => !built.some((index) => index.name === name));
}

async function stateOf(db: SQL, name: string): Promise<{ valid: boolean } | undefined> {
  const [found]: { valid: boolean }[] = await db`
    SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass(${name})`;
  return found;
}
