// Brings settled records from memory, and from the spool where memory was full, into the database.
import type { Log } from "../domain/log.ts";
import type { UsageRecord, UsageTotals } from "../domain/usage.ts";
import type { Database } from "./database.ts";
import type { LedgerJournal, SettledRecord } from "./ledger-journal.ts";
import type { Segment, Spool } from "./spool.ts";
import { readSegment } from "./spool-reader.ts";
import { readOwnerTotals, type UsageOwner } from "./usage-rows.ts";
import type { UsageWriter } from "./usage-writer.ts";

/** Records in one transaction: about 2 ms of work. */
export const batchSize = 1_000;
/** Records in one write to the spool, where they could not be written in time. */
const respoolBatch = 64;

export interface LedgerDrainOptions {
  db: Database;
  writer: UsageWriter;
  log: Log;
  spool: Spool;
  journal: Pick<LedgerJournal, "commit" | "rotate" | "repeat">;
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

  /** Tries again to write what the spool could not take. */
  respool(): void {
    if (this.#unspooled === 0) return;
    const unspooled = this.#pending.filter(({ spooled }) => !spooled);
    for (let from = 0; from < unspooled.length; from += respoolBatch) {
      const batch = unspooled.slice(from, from + respoolBatch);
      try {
        this.#options.journal.repeat(batch);
      } catch {
        // The journal has told it.
        return;
      }
      this.#unspooled -= batch.length;
    }
  }

  /** Resolves when all that waits now is in the database. Rejects when it cannot be written; all of it waits on. */
  drain(): Promise<void> {
    return this.#inTurn(() => this.#drain());
  }

  readTotals(owner: UsageOwner, use: (totals: UsageTotals) => void): Promise<void> {
    return this.#inTurn(async () => {
      for (;;) {
        while (this.#unread > 0 || this.#mayRepeat) await this.#drain();
        const { totals, owns } = await readOwnerTotals(this.#options.db, owner);
        // What was settled in this turn of the event loop is among what waits, or finds no room there.
        this.#options.journal.commit();
        if (this.#unread > 0) continue;
        for (const { record } of this.#pending) {
          if (!owns(record)) continue;
          totals.tokens += record.promptTokens + record.completionTokens;
          totals.nanoUsd += record.nanoUsd ?? 0;
        }
        return use(totals);
      }
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
    this.#options.journal.commit();
    for (let left = this.#pending.length; left > 0; left -= batchSize) {
      const batch = this.#pending.slice(0, Math.min(left, batchSize));
      await this.#insert(batch.map(({ record }) => record));
      this.#pending.splice(0, batch.length);
      for (const { segment, spooled } of batch) {
        segment.pins--;
        if (!spooled) this.#unspooled--;
      }
    }
  }

  /** A segment that is still written is closed first, so that it is not read again and again while it grows. */
  async #readBack(segment: Segment): Promise<void> {
    const { log, spool, journal } = this.#options;
    if (segment === spool.current) journal.rotate();
    const count = segment.unread;
    const records: UsageRecord[] = [];
    let damaged = 0;
    for (const chunk of readSegment(segment.path)) {
      damaged += chunk.damaged;
      for (const line of chunk.lines) if ("settle" in line) records.push(line.settle);
      while (records.length >= batchSize) await this.#insert(records.splice(0, batchSize));
    }
    if (records.length > 0) await this.#insert(records);
    if (damaged > 0) log.warn("ledger_lines_damaged", { segment: segment.number, lines: damaged });
    segment.unread -= count;
    segment.pins -= count;
    this.#unread -= count;
  }

  /** Requests have their turn between two batches. */
  async #insert(records: readonly UsageRecord[]): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.#options.writer.insert(records);
  }
}
