// Imports the spool of a lost server into the database, so that its usage is not lost.
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { StartError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Quota } from "../domain/limits/limits.ts";
import { accountsOf, type Recovered, recoverSpool } from "../ledger/ledger-recovery.ts";
import { openUsageWriter } from "../ledger/usage/usage-writer.ts";
import { SharedLimits } from "../limits/shared/shared-limits.ts";
import { limitsOf, quotasOf } from "../policy/limits-of.ts";
import { Tiers } from "../policy/manage/tiers.ts";
import { tryLockAll } from "../storage/files/data-directory-lock.ts";
import { lockNames } from "../storage/files/lock-holder.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlAccountStore } from "../storage/tables/account-store.ts";
import { SqlKeyStore } from "../storage/tables/key-store.ts";
import { type DatabaseLocation, withDatabaseOf } from "./data-directory.ts";

export interface SpoolDrainOptions extends DatabaseLocation {
  /** A data directory, or its directory `spool`. */
  directory: string;
  /** URL of the Redis that counts limits for all replicas; undefined if there is none. */
  redisUrl: string | undefined;
  log: Log;
}

export interface DrainedSpool extends Recovered {
  /** Path of the spool directory. */
  spool: string;
}

/**
 * Imports the usage of a spool into the database. Can be repeated safely. Throws a StartError if nothing was imported.
 */
export async function drainSpool(options: SpoolDrainOptions): Promise<DrainedSpool> {
  const { directory, redisUrl, log, ...place } = options;
  const spool = spoolIn(directory);
  const release = lockOf(dirname(spool));
  try {
    return await withDatabaseOf(place, async (db) => {
      await requireKnown(db, accountsOf(spool));
      const counters = await openCounters(redisUrl, spool, log);
      // Only the spool is locked; a running server may use the database.
      const writer = await openUsageWriter(db, { isAlone: false });
      try {
        const recovered = await recoverSpool({ db, writer, directory: spool, log });
        // Redis lacks the imported usage, so the affected quotas must be loaded from the database again.
        counters?.forgetQuotas(await quotasOfRecovered(db, recovered));
        if ((await counters?.close()) === false) throw notSent();
        return { spool, ...recovered };
      } finally {
        writer.close();
        await counters?.close();
      }
    });
  } finally {
    release();
  }
}

/**
 * Opens the limit store before anything is imported. If opening it failed only after the import, it would be unknown
 * which quotas to load again.
 */
async function openCounters(url: string | undefined, directory: string, log: Log): Promise<SharedLimits | undefined> {
  if (url === undefined) return undefined;
  const ledger = { readTotals: () => Promise.reject(new Error("nothing is counted here")) };
  const limits = await SharedLimits.open({ url, clock: systemClock, ledger, directory, log });
  const state = limits.state();
  if (state.status === "ok") return limits;
  await limits.close();
  throw new StartError(
    `The server at HEADRACE_REDIS_URL cannot be used (${state.reason}), and it counts quotas that this usage is part of. Try again when it is back.`,
  );
}

function notSent(): StartError {
  return new StartError(
    "The usage was taken over into the database, but the server at HEADRACE_REDIS_URL was not told in time, and counts quotas without it. Run the same command again, once that server answers.",
  );
}

async function quotasOfRecovered(db: Database, recovered: Recovered): Promise<Iterable<Quota>> {
  const tiers = new Tiers();
  tiers.load(await new SqlAccountStore(db).listTiers());
  return await quotasOf(recovered, new SqlKeyStore(db), ({ keys, account }) =>
    limitsOf({ keys, account, environment: keys[0].environment, tier: tiers.find(account.tier) }),
  );
}

function spoolIn(directory: string): string {
  if (!existsSync(directory) || !statSync(directory).isDirectory()) {
    throw new StartError(`There is no directory ${directory}. Name the data directory of the server that is gone.`);
  }
  const inside = join(directory, "spool");
  if (existsSync(inside)) return inside;
  if (directory.endsWith("/spool") || readdirSync(directory).some((name) => name.endsWith(".spool"))) return directory;
  throw new StartError(
    `There is no spool in ${directory}. Name the data directory of the server that is gone, or the directory \`spool\` of it.`,
  );
}

/**
 * Locks the data directory, because a running server imports its own spool. A copy of a spool may have no lock file.
 */
function lockOf(dataDir: string): () => void {
  const there = lockNames.filter((name) => existsSync(join(dataDir, name)));
  const release = tryLockAll(dataDir, there);
  if (release) return release;
  throw new StartError(
    `A Headrace that runs uses ${dataDir}, and brings its spool into the database by itself. Stop it first if it must be done now.`,
  );
}

/**
 * Throws if an account of the spool is unknown: in the wrong database the usage would be lost, because the spool is
 * deleted.
 */
async function requireKnown(db: Database, accountIds: ReadonlySet<string>): Promise<void> {
  for (const id of accountIds) {
    const found: unknown[] = await db`SELECT id FROM accounts WHERE id = ${id}`;
    if (found.length > 0) continue;
    throw new StartError(
      `The spool has usage of the account ${id}, which is not in this database: it is of another installation. Set HEADRACE_DATABASE_URL to the database that the server used, or --data-dir to the directory with its headrace.db.`,
    );
  }
}
