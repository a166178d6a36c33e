// Builds indexes of large PostgreSQL tables while servers write to them, which a migration step cannot.

import { SQL } from "bun";
import type { Log } from "../../base/log.ts";
import { concurrentIndexes } from "./migrations.ts";
import { postgresCode } from "./postgres-errors.ts";
import { databaseOf } from "./postgres-pool.ts";

/** Number of the advisory lock of the process that builds. */
const indexesLock = 0x6865_6103;
/** Milliseconds until the next attempt after a fault, such as a database that is away. */
const againMs = 60_000;

/**
 * Builds the missing indexes, one after the other. Until then queries that need them are slow. Never rejects; tries
 * again after a fault, until `close`.
 */
export function buildIndexes(url: string, log: Log): { close(): void } {
  let open: SQL | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;
  const attempt = async () => {
    open = new SQL(url, { max: 1, connectionTimeout: 5, database: databaseOf(url) });
    try {
      await build(open, log);
    } catch (error) {
      if (isClosed) return;
      log.warn("indexes_not_built", { detail: postgresCode(error) ?? "unknown", again_in_s: againMs / 1000 });
      timer = setTimeout(() => void attempt(), againMs);
      timer.unref();
    } finally {
      await open.close({ timeout: 0 });
    }
  };
  void attempt();
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
      void open?.close({ timeout: 0 });
    },
  };
}

async function build(db: SQL, log: Log): Promise<void> {
  // The next process to start builds what a killed one left.
  const [lock]: { held: boolean }[] = await db`SELECT pg_try_advisory_lock(${indexesLock}) AS held`;
  if (!lock?.held) return;
  await db.unsafe("SET statement_timeout = 0");
  for (const [name, statement] of concurrentIndexes()) {
    const [found]: { valid: boolean }[] = await db`
      SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass(${name})`;
    if (found?.valid) continue;
    // The rest of a build that was interrupted: writes maintain it, but no query uses it.
    if (found) await db.unsafe(`DROP INDEX CONCURRENTLY ${name}`);
    log.info("index_build_started", { index: name });
    await db.unsafe(statement);
    log.info("index_built", { index: name });
  }
}
