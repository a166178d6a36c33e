// The interface for writing usage into SQLite or PostgreSQL.
import type { SpanTotals, UsageRecord } from "../../domain/usage/usage.ts";
import { at, UsageColumns } from "./usage-columns.ts";
import type { TotalOf } from "./usage-sums.ts";

/** Writes usage into the database. SQLite and PostgreSQL have separate implementations for speed. */
export interface UsageWriter {
  /**
   * Adds new records and their roll-ups in one transaction. Resolves to the number of new records; a known request id
   * does not count again. At most some thousand records. Waits up to `waitMs` for a database lock. Records beyond their
   * retention are left out, because they may have been counted already.
   */
  insert(usage: UsageColumns | readonly UsageRecord[], waitMs?: number): Promise<number>;
  /** The number of records that were left out because they are beyond their retention. */
  readonly tooOld: number;
  readonly rollups: LaterRollups;
  close(): void;
}

/** Sums that are not in the roll-ups yet. A reader must call `catchUp` first, or add them. */
export interface LaterRollups {
  /**
   * `gathered` is the number of batches whose sums were delayed; `moved` is the number of those that are in the
   * roll-ups now.
   */
  readonly gathered: number;
  readonly moved: number;
  /** True if the roll-ups lack sums. */
  readonly isBehind: boolean;
  /** True if it is time to call `goOn`. */
  readonly isDue: boolean;
  /** Writes sums for some milliseconds. Waits up to `waitMs` for a database lock. */
  goOn(waitMs?: number): Promise<void>;
  totalOf(owner: TotalOf): SpanTotals;
}

/** Resolves when the roll-ups are complete. */
export async function catchUp({ rollups }: UsageWriter, waitMs?: number): Promise<void> {
  while (rollups.isBehind) await rollups.goOn(waitMs);
}

export function columnsOf(usage: UsageColumns | readonly UsageRecord[]): UsageColumns {
  return usage instanceof UsageColumns ? usage : UsageColumns.of(usage);
}

/** Returns the records from `from` on (Unix seconds as text); all of them if `from` is undefined. */
export function keptUsage(usage: UsageColumns, from: string | undefined): UsageColumns {
  if (from === undefined) return usage;
  const since = Number(from);
  return usage.filter((row) => usage.number(row, at) >= since);
}
