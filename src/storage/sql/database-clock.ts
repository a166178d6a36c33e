// Measures a database's clock and round trips.
import { type Clock, exactMs, wallMs } from "../../base/clock.ts";
import { type Database, databaseSeconds, dialectOf } from "./database.ts";

export interface TimedAnswer {
  /** Milliseconds of the fastest of a few round trips. */
  roundTripMs: number;
  /**
   * The database's clock minus this machine's in milliseconds, exact to half of the round trip. Undefined if the
   * database has no clock of its own.
   */
  aheadMs: number | undefined;
}

const tries = 3;

/**
 * Returns this process's clock minus the database's in whole seconds. SQLite has no clock of its own. The creation of
 * its first account is a lower bound of the time: the result is negative if this process's clock is earlier, otherwise
 * 0. Undefined if there is no account.
 */
export async function secondsAheadOf(db: Database, clock: Pick<Clock, "nowSeconds">): Promise<number | undefined> {
  if (dialectOf(db) === "sqlite") {
    const [first]: { seconds: number | null }[] = await db`SELECT min(created_at) AS seconds FROM accounts`;
    const seconds = first?.seconds ?? undefined;
    return seconds === undefined ? undefined : Math.min(0, clock.nowSeconds() - seconds);
  }
  const [row]: { seconds: number | string }[] = await db`SELECT ${databaseSeconds(db)} AS seconds`;
  return clock.nowSeconds() - Number(row?.seconds);
}

export async function timeDatabase(db: Database): Promise<TimedAnswer> {
  const isSqlite = dialectOf(db) === "sqlite";
  return quickest(async () => {
    if (isSqlite) {
      await db`SELECT 1`;
      return undefined;
    }
    const [row]: { ms: number | string }[] = await db`SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms`;
    return Number(row?.ms);
  });
}

/** Asks a few times and returns the fastest answer. `ask` returns the other clock's Unix milliseconds, or nothing. */
export async function quickest(ask: () => Promise<number | undefined>): Promise<TimedAnswer> {
  let best: TimedAnswer | undefined;
  for (let turn = 0; turn < tries; turn++) {
    const startedMs = exactMs();
    const theirs = await ask();
    const roundTripMs = exactMs() - startedMs;
    const aheadMs = theirs === undefined ? undefined : theirs - (wallMs() - roundTripMs / 2);
    if (!best || roundTripMs < best.roundTripMs) best = { roundTripMs, aheadMs };
  }
  return best ?? { roundTripMs: 0, aheadMs: undefined };
}
