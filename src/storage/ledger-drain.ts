// Brings settled records from memory, and from the spool where memory was full, into the database.
import type { Log } from "../domain/log.ts";
import type { UsageRecord, UsageTotals } from "../domain/usage.ts";
import type { Database } from "./database.ts";
import type { Segment, Spool } from "./spool.ts";
import { readSegment } from "./spool-reader.ts";
import { insertUsage, readOwnerTotals, type UsageOwner } from "./usage-rows.ts";

/** Records in one transaction. */
export const batchSize = 500;

export interface SettledRecord {
  record: UsageRecord;
  /** Where it stands; where the spool could not take it, where its begin stands. Pinned until it is in the database. */
  segment: Segment;
  spooled: boolean;
}

export interface LedgerDrainOptions {
  db: Database;
  log: Log;
  spool: Spool;
  /** Records that are held in memory; more wait on the spool alone. */
  maxPending: number;
}

export class LedgerDrain {
  readonly #options: LedgerDrainOptions;
  readonly #pending: SettledRecord[] = [];
  /** Of `#pending`, those that are in memory alone. */
  #unspooled = 0;
  /** Settled records that are on the spool alone. */
  #unread = 0;
  /** Reading the spool may have brought some of `#pending` into the database already. */
  #mayRepeat = false;
  /** What works on the database: one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: LedgerDrainOptions) {
    this.#options = options;
  }

  /** Held in memory. */
  get pending(): number {
    return this.#pending.length;
  }

  get unspooled(): number {
    return this.#unspooled;
  }

  get waiting(): number {
    return this.#pending.length + this.#unread;
  }

  add(settled: SettledRecord): void {
    if (settled.spooled && this.#pending.length >= this.#options.maxPending) {
      this.leaveOnSpool(settled.segment);
      return;
    }
    if (!settled.spooled) this.#unspooled++;
    this.#pending.push(settled);
  }

  /** A record that was written to this segment and is not held here. */
  leaveOnSpool(segment: Segment): void {
    segment.unread++;
    this.#unread++;
  }

  /** Tries again to write what the spool could not take; `write` throws where it still cannot. */
  respool(write: (settled: SettledRecord) => void): void {
    if (this.#unspooled === 0) return;
    for (const settled of this.#pending) {
      if (settled.spooled) continue;
      try {
        write(settled);
      } catch {
        return;
      }
      settled.spooled = true;
      this.#unspooled--;
    }
  }

  /** Resolves when all that waits now is in the database. Rejects when it cannot be written; all of it waits on. */
  drain(): Promise<void> {
    return this.#inTurn(() => this.#drain());
  }

  readTotals(owner: UsageOwner, use: (totals: UsageTotals) => void): Promise<void> {
    return this.#inTurn(async () => {
      while (this.#unread > 0 || this.#mayRepeat) await this.#drain();
      const { totals, owns } = await readOwnerTotals(this.#options.db, owner);
      for (const { record } of this.#pending) {
        if (!owns(record)) continue;
        totals.tokens += record.promptTokens + record.completionTokens;
        totals.nanoUsd += record.nanoUsd ?? 0;
      }
      use(totals);
    });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  async #drain(): Promise<void> {
    await this.#insertPending();
    if (!this.#mayRepeat && this.#unread === 0) return;
    this.#mayRepeat = true;
    for (const segment of this.#options.spool.segments.filter((one) => one.unread > 0)) {
      await this.#readBack(segment);
      // At once, so that what is settled meanwhile finds room in memory.
      await this.#insertPending();
    }
    this.#mayRepeat = false;
  }

  async #insertPending(): Promise<void> {
    for (let left = this.#pending.length; left > 0; left -= batchSize) {
      const batch = this.#pending.slice(0, Math.min(left, batchSize));
      await insertUsage(
        this.#options.db,
        batch.map(({ record }) => record),
      );
      this.#pending.splice(0, batch.length);
      for (const { segment, spooled } of batch) {
        segment.pins--;
        if (!spooled) this.#unspooled--;
      }
    }
  }

  /** A segment that is still written is closed first, so that it is not read again and again while it grows. */
  async #readBack(segment: Segment): Promise<void> {
    const { db, log, spool } = this.#options;
    const count = segment.unread;
    if (segment === spool.current) spool.rotate();
    const records: UsageRecord[] = [];
    let damaged = 0;
    for (const chunk of readSegment(segment.path)) {
      damaged += chunk.damaged;
      for (const line of chunk.lines) if ("settle" in line) records.push(line.settle);
      while (records.length >= batchSize) await insertUsage(db, records.splice(0, batchSize));
    }
    if (records.length > 0) await insertUsage(db, records);
    if (damaged > 0) log.warn("ledger_lines_damaged", { segment: segment.number, lines: damaged });
    segment.unread -= count;
    segment.pins -= count;
    this.#unread -= count;
  }
}
