// Opens the data directory, the database and the feed of changes.
import { chmodSync, closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config/config.ts";
import { type ChangeFeed, noChangeFeed } from "../domain/change-feed.ts";
import { requireDatabaseFile } from "../maintenance/installation-id.ts";
import { openUpToDate } from "../maintenance/upgrade.ts";
import { Replicas } from "../policy/records/replicas.ts";
import { finishRestore } from "../storage/backup/restore-steps.ts";
import { lockDataDirectory } from "../storage/files/data-directory-lock.ts";
import { makeDirectory } from "../storage/files/durable-file.ts";
import { lockNames } from "../storage/files/lock-holder.ts";
import { startCheckpoints } from "../storage/sql/checkpointer.ts";
import { type Database, databaseName, dialectOf, openPostgres } from "../storage/sql/database.ts";
import type { PoolBounds } from "../storage/sql/postgres-pool.ts";
import { schemaState } from "../storage/sql/schema.ts";
import { SqlReplicaStore } from "../storage/tables/replica-store.ts";
import type { Opened } from "./opened.ts";

export interface RecordsOptions {
  config: Config;
  log: Log;
  version: string;
  /** The bounds of PostgreSQL's pool; undefined means the defaults. */
  databaseBounds: PoolBounds | undefined;
  opened: Opened;
}

export interface Records {
  db: Database;
  feed: ChangeFeed;
  replicas: Replicas;
}

/**
 * Opens the records. Rejects with a StartError if another server uses the directory, or if the database cannot be used.
 */
export async function openRecords({ config, log, version, databaseBounds, opened }: RecordsOptions): Promise<Records> {
  const { dataDir, databaseUrl, redisUrl } = config;
  prepareDirectory(dataDir);
  opened.onClose(lockDataDirectory(dataDir));
  const replaced = databaseUrl === undefined ? await finishRestore(dataDir) : undefined;
  if (replaced !== undefined) log.warn("restore_finished", { replaced });
  if (databaseUrl === undefined) {
    requireDatabaseFile(dataDir);
    prepareDatabase(dataDir);
  }
  const db = await (databaseUrl === undefined
    ? openUpToDate({ config, log, version, nowSeconds: systemClock.nowSeconds() })
    : openPostgres(databaseUrl, { bounds: databaseBounds }));
  opened.add(db);
  await warnOfNewerSchema(db, log);
  if (databaseUrl !== undefined) {
    const { buildIndexes } = await import("../storage/sql/postgres-indexes.ts");
    opened.add(buildIndexes(databaseUrl, log));
  }
  const checkpoints = await startCheckpoints(db);
  if (checkpoints) opened.add(checkpoints);
  let feed: ChangeFeed = noChangeFeed;
  if (redisUrl !== undefined) {
    // Redis code is loaded only if Redis is configured.
    const { RedisChangeFeed } = await import("../storage/redis/redis-change-feed.ts");
    feed = opened.add(await RedisChangeFeed.open({ url: redisUrl, log }));
  }
  const replicas = new Replicas({
    ...{ store: new SqlReplicaStore(db), log, version },
    advertiseUrl: config.advertiseUrl ?? null,
    isShared: databaseUrl !== undefined,
    sharesLimits: redisUrl !== undefined,
  });
  await replicas.start();
  opened.add(replicas);
  return { db, feed, replicas };
}

/** Warns of a newer schema, which is normal during a rolling upgrade and after a downgrade. */
async function warnOfNewerSchema(db: Database, log: Log): Promise<void> {
  const { version, known, madeBy } = await schemaState(db, dialectOf(db));
  if (version <= known) return;
  log.warn("schema_is_newer", {
    ...{ schema: version, known_schema: known, made_by: madeBy },
    detail:
      "A newer Headrace brought the database's schema up to date, and this one can work with it. It does not look at what the newer one added, such as limits of a kind that it does not know.",
  });
}

/** Makes the directory private, because it holds keys' digests, usage and stored chats. */
function prepareDirectory(dataDir: string): void {
  makeDirectory(dataDir);
  for (const name of lockNames) makePrivate(join(dataDir, name));
}

/**
 * Makes the database's file private. This also matters in an existing directory that others can read, such as a mounted
 * volume. SQLite gives its journals the mode of the database.
 */
function prepareDatabase(dataDir: string): void {
  makePrivate(join(dataDir, databaseName));
  // A killed process leaves these files, which SQLite reuses with their mode.
  for (const name of [`${databaseName}-wal`, `${databaseName}-shm`]) {
    const file = join(dataDir, name);
    if (existsSync(file)) chmodSync(file, 0o600);
  }
}

function makePrivate(file: string): void {
  closeSync(openSync(file, "a", 0o600));
  chmodSync(file, 0o600);
}
