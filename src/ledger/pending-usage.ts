// Settled records that are held in memory until the database has them, oldest first.
import type { Segment } from "./spool.ts";
import { UsageColumns } from "./usage/usage-columns.ts";

/** Maximum records in one transaction: about 2 ms of work. */
export const batchSize = 1_000;
/** Maximum empty batches that are kept for reuse. */
const maxSpare = 8;

/** Records that are written to the database together. */
export class PendingBatch {
  readonly usage = new UsageColumns(batchSize);
  /**
   * For each record, the segment of the spool that contains it, or else the line with which its request began. Pinned
   * until the record is in the database.
   */
  readonly segments: Segment[] = [];
  /** 1 for each record that is in the spool, otherwise 0. */
  readonly spooled = new Uint8Array(batchSize);
  /** True while the batch is being written, so that no record may be added. */
  isTaken = false;
}

export class PendingUsage {
  readonly #batches: PendingBatch[] = [];
  readonly #spare: PendingBatch[] = [];
  #length = 0;
  #unspooled = 0;

  get length(): number {
    return this.#length;
  }

  /** The number of records that are only in memory and not in the spool. */
  get unspooled(): number {
    return this.#unspooled;
  }

  get batches(): readonly PendingBatch[] {
    return this.#batches;
  }

  /** Adds a copy of a row of `from`. `isSpooled`: the spool contains the record. */
  add(from: UsageColumns, row: number, segment: Segment, isSpooled: boolean): void {
    let batch = this.#batches.at(-1);
    if (batch === undefined || batch.isTaken || batch.usage.length === batchSize) {
      batch = this.#spare.pop() ?? new PendingBatch();
      this.#batches.push(batch);
    }
    const added = batch.usage.copy(from, row);
    batch.segments[added] = segment;
    batch.spooled[added] = isSpooled ? 1 : 0;
    this.#length++;
    if (!isSpooled) this.#unspooled++;
  }

  /** Marks the record as stored in this segment. */
  respooled(batch: PendingBatch, row: number, segment: Segment): void {
    const before = batch.segments[row];
    if (before) before.pins--;
    segment.pins++;
    batch.segments[row] = segment;
    batch.spooled[row] = 1;
    this.#unspooled--;
  }

  /** Removes the oldest batch after it was written. */
  removeFirst(): void {
    const batch = this.#batches.shift();
    if (batch === undefined) return;
    const { length } = batch.usage;
    for (let row = 0; row < length; row++) {
      const segment = batch.segments[row];
      if (segment) segment.pins--;
      if (batch.spooled[row] === 0) this.#unspooled--;
    }
    this.#length -= length;
    batch.usage.clear();
    batch.isTaken = false;
    if (this.#spare.length < maxSpare) this.#spare.push(batch);
  }
}
