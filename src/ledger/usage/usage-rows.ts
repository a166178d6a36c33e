// The port that writes usage into either database.
import type { SpanTotals, UsageRecord } from "../../domain/usage/usage.ts";
import { at, UsageColumns } from "./usage-columns.ts";
import type { TotalOf } from "./usage-sums.ts";

/** Each database has its own implementation, because speed matters only on this path. */
export interface UsageWriter {
  /**
   * Adds new records and their roll-ups together, or nothing, and resolves to the number of new records. A request id
   * counts once, with its first record. At most some thousand at a time. Waits up to `waitMs` for another connection's
   * lock, while other work runs. Records beyond their retention are left out, because they may have been counted.
   */
  insert(usage: UsageColumns | readonly UsageRecord[], waitMs?: number): Promise<number>;
  /** Records left out for their age since the opening. */
  readonly tooOld: number;
  readonly rollups: LaterRollups;
  close(): void;
}

/** Records that are not in the roll-ups yet. A reader must catch up first, or add them. */
export interface LaterRollups {
  /** Number of incomplete batches, and of those completed since. */
  readonly gathered: number;
  readonly moved: number;
  /** True if there is something to do. */
  readonly isBehind: boolean;
  /** True if it is time to continue. */
  readonly isDue: boolean;
  /** Runs some milliseconds of work. Rejects as `insert` does. `waitMs`: as there. */
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

/** `from`: Unix seconds as `installation` has them; undefined: all are kept. */
export function keptUsage(usage: UsageColumns, from: string | undefined): UsageColumns {
  if (from === undefined) return usage;
  const since = Number(from);
  return usage.filter((row) => usage.number(row, at) >= since);
}
