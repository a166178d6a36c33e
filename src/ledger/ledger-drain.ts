// Writes the ledger's settled records into the database: from memory, and from the spool if memory was full.
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

/** Maximum records in one write to the spool, when failed writes are repeated. */
const respoolBatch = 64;
/** Maximum roll-up steps in one round, so that waiting records are not delayed. */
const rollupSteps = 8;
/** Number of totals that are read concurrently; fewer than the database has connections. */
const readsAtOnce = 4;
/** A record of this age in seconds must still exist, because retention deletes only after a day. */
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
  /** The number of settled records that are only in the spool and not in memory. */
  #unread = 0;
  /**
   * True if some of `#pending` may already be in the database, because the spool was read back or a commit's outcome is
   * unknown.
   */
  #mayRepeat = false;
  readonly #readers: TotalsReader[] = [];
  /** The newest record whose write the database has confirmed. */
  #taken: { requestId: string; at: number } | undefined;
  /** True if the last write failed. The next one may reach another database server after a failover. */
  #wasAway = false;
  /** Runs tasks on the database one after another. */
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
   * Adds a settled record. If `isSpooled` is true, `segment` contains the record; otherwise only the line with which
   * its request began.
   */
  add(usage: UsageColumns, row: number, segment: Segment, isSpooled: boolean): void {
    if (isSpooled && this.#pending.length >= this.#options.maxPending) this.leaveOnSpool(segment);
    else this.#pending.add(usage, row, segment, isSpooled);
  }

  /** Counts a settled record that is not in memory, but only in this segment of the spool. */
  leaveOnSpool(segment: Segment): void {
    segment.unread++;
    this.#unread++;
  }

  /** Repeats failed writes of records to the spool. */
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
      // The journal has logged the error.
      return false;
    }
    for (const row of rows) this.#pending.respooled(batch, row, segment);
    return true;
  }

  /**
   * Resolves when all settled records are in the database; roll-ups may still lack some. Rejects if a write fails; the
   * records are kept.
   */
  drain(): Promise<void> {
    return this.#inTurn(() => this.#drain());
  }

  /** Resolves when all settled records are in the database and in the roll-ups. */
  drainAll(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#drain();
      await this.#rollUp(Number.POSITIVE_INFINITY);
    });
  }

  /**
   * Resolves when the roll-ups contain all records that are in the database now. This may take a second, because other
   * work goes first.
   */
  async catchUp(): Promise<void> {
    const { rollups } = this.#options.writer;
    const { gathered } = rollups;
    while (rollups.moved < gathered) await this.#inTurn(() => this.#rollUp(rollupSteps));
  }

  readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#readers.push({ owner, use, resolve, reject });
      // Each turn serves several readers, so an earlier reader's turn may serve this reader too.
      void this.#inTurn(() => this.#readNext());
    });
  }

  /**
   * Passes an owner's usage that is not in the database yet to `use`. Until `until` settles, nothing is written to the
   * database, so no usage can be counted twice or missed.
   */
  hold(owner: TotalsOwner, use: (waiting: SpanTotals) => void, until: Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      const { owns, totalOf } = await readOwnerTotals(this.#options.db, owner);
      // If no record is unread or may be repeated, nothing is written here. So the usage can be read even while the
      // database refuses writes, for example on a full disk.
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
        // Commit first, so that records settled in this tick are in memory or in the spool.
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

  /** Returns the totals with the usage that is not in the database or its roll-ups yet. */
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
      // Insert each segment immediately, to keep memory free.
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

  /** Logs an error if the database has lost a confirmed record, as after a failover. Never rejects. */
  async #followTaken(usage: UsageColumns, hasTooOld: boolean): Promise<void> {
    const { db, log } = this.#options;
    const row = usage.length - 1;
    const [before, newest] = [this.#taken, { requestId: usage.requestIds[row] ?? "", at: usage.number(row, at) }];
    if (this.#wasAway && before && newest.at - before.at < surelyKeptSeconds) {
      let found: readonly unknown[];
      try {
        found = await db`SELECT 1 FROM usage_records WHERE request_id = ${before.requestId}`;
      } catch {
        // The check is repeated after the next write.
        return;
      }
      if (found.length === 0) log.error("database_went_back", { detail: wentBack });
    }
    this.#wasAway = false;
    // A batch with records beyond their retention cannot serve for the check, because the database did not keep those
    // records.
    if (!hasTooOld) this.#taken = newest;
  }

  /** Runs roll-up steps. Requests are served between two steps. */
  async #rollUp(steps: number): Promise<void> {
    const { rollups } = this.#options.writer;
    for (let remaining = steps; remaining > 0 && rollups.isBehind; remaining--) {
      await new Promise((resolve) => setImmediate(resolve));
      await rollups.goOn();
    }
  }

  /**
   * Reads the settled records of a segment and inserts them. The current segment is closed first; otherwise it would be
   * read again as it grows.
   */
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

  /** Inserts records. Requests are served between two batches. */
  async #insert(usage: UsageColumns | readonly UsageRecord[]): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.#options.writer.insert(usage);
  }
}

function rowsOf({ usage }: PendingBatch): number[] {
  return Array.from({ length: usage.length }, (_, row) => row);
}
