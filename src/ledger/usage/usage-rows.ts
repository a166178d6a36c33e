// The interface for writing usage into either database.
import type { SpanTotals, UsageRecord } from "../../domain/usage/usage.ts";
import { at, UsageColumns } from "./usage-columns.ts";
import type { TotalOf } from "./usage-sums.ts";

/**
 * Writes usage. Each database has its own implementation, because this is the only path on which the database's speed
 * matters.
 */
export interface UsageWriter {
  /**
   * Adds new records and their roll-ups together, or nothing, and resolves to the number of new records. A request id
   * counts once, with its first record. At most some thousand at a time. Waits up to `waitMs` for another connection's
   * lock, while other work runs. Records beyond their retention are left out, because they may have been counted.
   */
  insert(usage: UsageColumns | readonly UsageRecord[], waitMs?: number): Promise<number>;
  /** The number of records left out for their age since the opening. */
  readonly tooOld: number;
  readonly rollups: LaterRollups;
  close(): void;
}

/** Records that are not in the roll-ups yet. A reader must catch up first, or add them. */
export interface LaterRollups {
  /**
   * `gathered` counts the batches of which the roll-ups lack some sums; `moved` counts those of them that were written
   * to the roll-ups since.
   */
  readonly gathered: number;
  readonly moved: number;
  /** True if there are sums to write to the roll-ups. */
  readonly isBehind: boolean;
  /** True if it is time to call `goOn`. */
  readonly isDue: boolean;
  /** Runs some milliseconds of work. Rejects as `insert` does, and has the same `waitMs`. */
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

/** Returns the usage that is not too old. `from` is Unix seconds as `installation` stores them; undefined keeps all. */
export function keptUsage(usage: UsageColumns, from: string | undefined): UsageColumns {
  if (from === undefined) return usage;
  const since = Number(from);
  return usage.filter((row) => usage.number(row, at) >= since);
}
