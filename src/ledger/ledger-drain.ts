// Writes settled records from memory, and from the spool if memory was full, into the database.
import { existsSync } from "node:fs";
import type { Log } from "../base/log.ts";
import type { SpanTotals, TotalsOwner, UsageRecord } from "../domain/usage/usage.ts";
import { type Database, dialectOf } from "../storage/sql/database.ts";
import { mayBeCommitted } from "../storage/sql/postgres-errors.ts";
import type { LedgerJournal } from "./ledger-journal.ts";
import { batchSize, type PendingBatch, PendingUsage } from "./pending-usage.ts";
import type { Segment, Spool } from "./spool.ts";
import { readSegment } from "./spool-reader.ts";
import { add, noTotals, type OwnerTotals, readOwnerTotals } from "./usage/owner-totals.ts";
import { at, completionTokens, nanoUsd, promptTokens, type UsageColumns } from "./usage/usage-columns.ts";
import type { UsageWriter } from "./usage/usage-writer.ts";

/** The number of records in one write to the spool, for records that the spool could not store before. */
const respoolBatch = 64;
/** The number of roll-up steps in one round. The bound keeps waiting records from being delayed. */
const rollupSteps = 8;
/** The number of totals that are read concurrently, fewer than the database's connections. */
const readsAtOnce = 4;
/** Records up to this age certainly exist, because retention deletes after a day at the earliest. */
const surelyKeptSeconds = 3_600;
const wentBack =
  "The database is an older copy of itself, as after a failover that lost commits: usage that it had taken is gone. So are API keys that were made in that time, and what was revoked in it is valid again.";

interface TotalsReader {
  owner: TotalsOwner;
  use(totals: SpanTotals): void;
  resolve(): void;
  reject(error: unknown): void;
}

export interface LedgerDrainOptions {
  db: Database;
  writer: UsageWriter;
  log: Log;
  spool: Spool;
  journal: Pick<LedgerJournal, "commit" | "rotate" | "repeat">;
  /** Maximum records in memory; further ones wait only in the spool. */
  maxPending: number;
}

export class LedgerDrain {
  readonly #options: LedgerDrainOptions;
  readonly #pending = new PendingUsage();
  /** The number of settled records that are only in the spool. */
  #unread = 0;
  /**
   * True if some of `#pending` may already be in the database, because the spool was read back or a commit's outcome is
   * unknown.
   */
  #mayRepeat = false;
  readonly #readers: TotalsReader[] = [];
  /** The newest record that the database confirmed. */
  #taken: { requestId: string; at: number } | undefined;
  /** True if the last write failed. The next write may reach another server, as after a failover. */
  #wasAway = false;
  /** The queue of serialized work on the database. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: LedgerDrainOptions) {
    this.#options = options;
  }

  /** The number of records in memory. */
  get pending(): number {
    return this.#pending.length;
  }

  get unspooled(): number {
    return this.#pending.unspooled;
  }

  get waiting(): number {
    return this.#pending.length + this.#unread;
  }

  /**
   * Adds a settled record. `segment`: as in `PendingBatch.segments`. `isSpooled`: the segment contains the record
   * itself.
   */
  add(usage: UsageColumns, row: number, segment: Segment, isSpooled: boolean): void {
    if (isSpooled && this.#pending.length >= this.#options.maxPending) this.leaveOnSpool(segment);
    else this.#pending.add(usage, row, segment, isSpooled);
  }

  /** Counts a record that was written to this segment and is not held in memory. */
  leaveOnSpool(segment: Segment): void {
    segment.unread++;
    this.#unread++;
  }

  /** Writes records to the spool that it could not store before. */
  respool(): void {
    if (this.#pending.unspooled === 0) return;
    for (const batch of this.#pending.batches) {
      const rows = rowsOf(batch).filter((row) => batch.spooled[row] === 0);
      for (let from = 0; from < rows.length; from += respoolBatch) {
        if (!this.#respool(batch, rows.slice(from, from + respoolBatch))) return;
      }
    }
  }

  #respool(batch: PendingBatch, rows: readonly number[]): boolean {
    let segment: Segment;
    try {
      segment = this.#options.journal.repeat(batch.usage, rows);
    } catch {
      // The error needs no handling, because the journal has logged it.
      return false;
    }
    for (const row of rows) this.#pending.respooled(batch, row, segment);
    return true;
  }

  /**
   * Resolves when all waiting records are in the database, though not yet in all roll-ups. Rejects if it cannot be
   * written; the records keep waiting.
   */
  drain(): Promise<void> {
    return this.#inTurn(() => this.#drain());
  }

  /** Does the same as `drain`, but resolves when the roll-ups are complete too. */
  drainAll(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#drain();
      await this.#rollUp(Number.POSITIVE_INFINITY);
    });
  }

  /**
   * Resolves when the roll-ups contain all records that are in the database now. That may take a second, because
   * records and awaited totals come first.
   */
  async catchUp(): Promise<void> {
    const { rollups } = this.#options.writer;
    const { gathered } = rollups;
    while (rollups.moved < gathered) await this.#inTurn(() => this.#rollUp(rollupSteps));
  }

  readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#readers.push({ owner, use, resolve, reject });
      // A turn reads the totals of several waiting readers. So by its turn, this reader may have been served already.
      void this.#inTurn(() => this.#readNext());
    });
  }

  /**
   * Passes an owner's settled usage that is not in the database to `use`, at a moment without a settlement between that
   * usage and later changes. Nothing is written to the database until `until` settles.
   */
  hold(owner: TotalsOwner, use: (waiting: SpanTotals) => void, until: Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      const { owns, totalOf } = await readOwnerTotals(this.#options.db, owner);
      // Records in memory are included even if the database refuses writes, such as on a full disk.
      do {
        while (this.#unread > 0 || this.#mayRepeat) await this.#drain();
        this.#options.journal.commit();
      } while (this.#unread > 0);
      use(this.#withWaiting({ totals: noTotals(), totalOf, owns }));
      await until;
    });
  }

  async #readNext(): Promise<void> {
    const readers = this.#readers.splice(0, readsAtOnce);
    if (readers.length === 0) return;
    try {
      for (;;) {
        while (this.#unread > 0 || this.#mayRepeat) await this.#drain();
        const found = await Promise.allSettled(readers.map(({ owner }) => readOwnerTotals(this.#options.db, owner)));
        // The journal is committed first, so that records settled in this tick of the event loop are in memory or in
        // the spool.
        this.#options.journal.commit();
        if (this.#unread > 0) continue;
        for (const [i, { use, resolve, reject }] of readers.entries()) {
          const one = found[i];
          if (one?.status !== "fulfilled") reject(one?.reason);
          else {
            use(this.#withWaiting(one.value));
            resolve();
          }
        }
        return;
      }
    } catch (error) {
      for (const { reject } of readers) reject(error);
    }
  }

  /** Adds the usage that is not in the database or its roll-ups yet to the totals. */
  #withWaiting({ totals, totalOf, owns }: OwnerTotals): SpanTotals {
    add(totals, this.#options.writer.rollups.totalOf(totalOf));
    for (const batch of this.#pending.batches) {
      const { usage } = batch;
      for (const row of rowsOf(batch)) {
        if (!owns(usage, row)) continue;
        add(totals, {
          requests: 1,
          tokens: usage.number(row, promptTokens) + usage.number(row, completionTokens),
          nanoUsd: usage.numberOrNull(row, nanoUsd) ?? 0,
          firstAt: usage.number(row, at),
        });
      }
    }
    return totals;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    // The caller gets the rejection of `done`; the queue continues regardless.
    this.#queue = done.catch(() => {});
    return done;
  }

  async #drain(): Promise<void> {
    await this.#insertPending();
    if (this.#options.writer.rollups.isDue) await this.#rollUp(rollupSteps);
    if (!this.#mayRepeat && this.#unread === 0) return;
    this.#mayRepeat = true;
    for (const segment of this.#options.spool.segments.filter((one) => one.unread > 0)) {
      await this.#readBack(segment);
      // Inserts immediately, to free memory for records that settle meanwhile.
      await this.#insertPending();
    }
    this.#mayRepeat = false;
  }

  async #insertPending(): Promise<void> {
    this.#options.journal.commit();
    for (let remaining = this.#pending.length; remaining > 0; ) {
      const [batch] = this.#pending.batches;
      if (batch === undefined) return;
      batch.isTaken = true;
      remaining -= batch.usage.length;
      try {
        const { tooOld } = this.#options.writer;
        await this.#insert(batch.usage);
        await this.#followTaken(batch.usage, this.#options.writer.tooOld > tooOld);
      } catch (error) {
        batch.isTaken = false;
        this.#wasAway = true;
        if (dialectOf(this.#options.db) === "postgres" && mayBeCommitted(error)) this.#mayRepeat = true;
        throw error;
      }
      this.#pending.removeFirst();
    }
  }

  /** Logs if a database accepts writes again but has lost earlier ones. Never rejects, because the write succeeded. */
  async #followTaken(usage: UsageColumns, hasTooOld: boolean): Promise<void> {
    const { db, log } = this.#options;
    const row = usage.length - 1;
    const [before, newest] = [this.#taken, { requestId: usage.requestIds[row] ?? "", at: usage.number(row, at) }];
    if (this.#wasAway && before && newest.at - before.at < surelyKeptSeconds) {
      let found: readonly unknown[];
      try {
        found = await db`SELECT 1 FROM usage_records WHERE request_id = ${before.requestId}`;
      } catch {
        // The next write checks for the same record again.
        return;
      }
      if (found.length === 0) log.error("database_went_back", { detail: wentBack });
    }
    this.#wasAway = false;
    // A batch with a record beyond its retention is not remembered, because the database does not keep that record.
    if (!hasTooOld) this.#taken = newest;
  }

  /** Runs roll-up steps; other requests run between two steps. */
  async #rollUp(steps: number): Promise<void> {
    const { rollups } = this.#options.writer;
    for (let remaining = steps; remaining > 0 && rollups.isBehind; remaining--) {
      await new Promise((resolve) => setImmediate(resolve));
      await rollups.goOn();
    }
  }

  /** Reads a segment back. A segment in use is closed first, so that a growing file is not read repeatedly. */
  async #readBack(segment: Segment): Promise<void> {
    const { log, spool, journal } = this.#options;
    if (segment === spool.current) journal.rotate();
    const count = segment.unread;
    const records: UsageRecord[] = [];
    let damaged = 0;
    const isDeleted = !existsSync(segment.path);
    if (isDeleted) {
      const detail = `Somebody deleted ${segment.path}: ${count} records of usage in it are lost.`;
      log.error("spool_file_deleted", { detail });
    }
    for (const chunk of isDeleted ? [] : readSegment(segment.path)) {
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

  /** Inserts records; other requests run between two batches. */
  async #insert(usage: UsageColumns | readonly UsageRecord[]): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.#options.writer.insert(usage);
  }
}

function rowsOf({ usage }: PendingBatch): number[] {
  return Array.from({ length: usage.length }, (_, row) => row);
}
