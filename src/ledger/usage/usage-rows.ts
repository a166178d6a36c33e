// The port that writes usage, whichever database it is.
import type { SpanTotals, UsageRecord } from "../../domain/usage/usage.ts";
import { at, UsageColumns } from "./usage-columns.ts";
import type { TotalOf } from "./usage-sums.ts";

/** Each database has its own: this is the one path on which its speed counts. */
export interface UsageWriter {
  /**
   * Adds what is not there yet, records and roll-ups together or none; resolves to the number of records that were new.
   * A request id counts once, its first record stands. At most some thousand at a time. A lock that another holds is
   * waited for, `waitMs` at most, while other work goes on. What is older than requests are kept is left out: nobody can
   * tell any more whether it was counted.
   */
  insert(usage: UsageColumns | readonly UsageRecord[], waitMs?: number): Promise<number>;
  /** Records that were left out for their age since it was opened. */
  readonly tooOld: number;
  readonly rollups: LaterRollups;
  close(): void;
}

/** Records that the roll-ups lack for now. Whoever reads them must have had them caught up, or add it. */
export interface LaterRollups {
  /** Counts batches of which they lack something, and how many of them were moved there since. */
  readonly gathered: number;
  readonly moved: number;
  /** Whether there is anything to do. */
  readonly isBehind: boolean;
  /** Whether it is time to go on with it. */
  readonly isDue: boolean;
  /** Some milliseconds of work; rejects as `insert` does. `waitMs`: as there. */
  goOn(waitMs?: number): Promise<void>;
  totalOf(owner: TotalOf): SpanTotals;
}

/** Resolves when the roll-ups lack nothing. */
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
