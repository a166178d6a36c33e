// Updates the roll-ups in SQLite: at once, or later if a batch of records would change very many rows.

import type { Clock } from "../../base/clock.ts";
import type { SpanTotals } from "../../domain/usage/usage.ts";
import type { PreparedSqlite } from "../../storage/sql/prepared-sqlite.ts";
import { type RecordRow, recordOf } from "../../storage/tables/record-row.ts";
import { add } from "./owner-totals.ts";
import { UsageColumns } from "./usage-columns.ts";
import type { LaterRollups } from "./usage-rows.ts";
import { rollupColumns, type SumColumns, type TotalOf, tagColumn, UsageSums } from "./usage-sums.ts";
import { totalsColumns } from "./usage-totals.ts";

/**
 * If a batch of records changes at least this many sums, it is collected in memory and written to the roll-ups later.
 */
const many = 200;
/**
 * Number of collected sums at which writing starts; maximum milliseconds until it starts; and number of sums from which
 * new ones are written at once.
 */
const enough = 200_000;
const waitMs = 60_000;
const maxWaiting = 250_000;
/** Number of sums that one transaction writes: two or three milliseconds of work. */
const stepSums = 150;
/** Number of rows of `usage_unrolled` that one transaction deletes. */
const stepUnrolled = 16;
const lockWaitMs = 60;

/** One run of the writer, which writes all sums collected so far. */
interface Pass {
  sums: UsageSums;
  sorting: ReturnType<UsageSums["inOrder"]>;
  /** The order in which sums are written, so that neighbors share database pages; undefined until they are sorted. */
  order: readonly number[] | undefined;
  done: number;
  /** Number of the last batch of records in this run. */
  lastBatch: number;
}

/**
 * Collects sums in memory, because a request of each of 100,000 keys would change 200,000 rows on as many pages. The
 * table `usage_unrolled` lists the requests of the collected batches. At each moment, the roll-ups plus that table
 * equal the sums of all records: a transaction that moves sums to the roll-ups adds them to the table as negative sums.
 * The last transaction of a run adds a row with its last batch number: rows up to this number no longer count, and are
 * deleted afterwards. So the process may die at any point, and the next one loads the remaining rows. Only one process
 * may collect sums in a database; others write theirs at once.
 */
export class SqliteRollups implements LaterRollups {
  readonly #db: PreparedSqlite;
  readonly #mayGather: boolean;
  readonly #clock: Pick<Clock, "monotonicMs">;
  #waiting = new UsageSums("hour");
  #waitingSinceMs = 0;
  #pass: Pass | undefined;
  /**
   * Numbers of rows in `usage_unrolled`: batches count up from 1, negative sums count down from -1, and 0 ends a run.
   */
  #lastBatch = 0;
  #lastMoved = 0;
  #lastTaken = 0;
  /** The records of a transaction that is not committed yet. */
  #uncommitted: UsageColumns | undefined;

  constructor(db: PreparedSqlite, mayGather: boolean, clock: Pick<Clock, "monotonicMs">) {
    this.#db = db;
    this.#mayGather = mayGather;
    this.#clock = clock;
  }

  get gathered(): number {
    return this.#lastBatch;
  }

  get moved(): number {
    return this.#lastMoved;
  }

  get isBehind(): boolean {
    return this.#pass !== undefined || this.#lastBatch > this.#lastMoved;
  }

  get isDue(): boolean {
    if (this.#pass !== undefined) return true;
    const { size } = this.#waiting;
    return size >= enough || (size > 0 && this.#clock.monotonicMs() - this.#waitingSinceMs >= waitMs);
  }

  /** Loads the sums that an earlier process had collected. `waitForLockMs` is the maximum wait for a database lock. */
  async recover(waitForLockMs: number): Promise<void> {
    const moved = this.#db.statement("SELECT sums FROM usage_unrolled WHERE batch = 0").get() as {
      sums: string;
    } | null;
    const forget = this.#db.statement("DELETE FROM usage_unrolled WHERE batch <= ?");
    if (moved !== null) await this.#db.whenUnlocked(() => forget.run(Number(moved.sums)), waitForLockMs);
    const rows = this.#db.statement("SELECT batch, sums FROM usage_unrolled").iterate() as Iterable<{
      batch: number;
      sums: string;
    }>;
    const records = this.#db.statement(recordsOfBatch);
    for (const { batch, sums } of rows) {
      if (batch < 0 || isSums(sums)) this.#waiting.addText(sums);
      else this.#waiting.add(UsageColumns.of((records.all(sums) as RecordRow[]).map(recordOf)));
      this.#lastBatch = Math.max(this.#lastBatch, batch);
      this.#lastTaken = Math.min(this.#lastTaken, batch);
    }
    this.#waitingSinceMs = this.#clock.monotonicMs();
  }

  /** Adds the sums of these records. Call this in the transaction that adds the records, and `committed` afterwards. */
  add(usage: UsageColumns): void {
    this.#uncommitted = undefined;
    if (usage.length === 0) return;
    const isGathering = this.#mayGather && this.#waiting.size > 0 && this.#waiting.size < maxWaiting;
    if (!isGathering) {
      const sums = new UsageSums("hour");
      sums.add(usage);
      if (!this.#mayGather || sums.size < many || this.#waiting.size >= maxWaiting) {
        for (let sum = 0; sum < sums.size; sum++) this.#write(sums, sum);
        return;
      }
    }
    this.#note(this.#lastBatch + 1, JSON.stringify(usage.requestIds.slice(0, usage.length)));
    this.#uncommitted = usage;
  }

  committed(): void {
    if (this.#uncommitted === undefined) return;
    if (this.#waiting.size === 0) this.#waitingSinceMs = this.#clock.monotonicMs();
    this.#waiting.add(this.#uncommitted);
    this.#lastBatch++;
    this.#uncommitted = undefined;
  }

  async goOn(waitForLockMs = lockWaitMs): Promise<void> {
    this.#pass ??= this.#begin();
    const pass = this.#pass;
    if (pass.order === undefined) {
      const sorted = pass.sorting.next();
      if (sorted.done) pass.order = sorted.value;
    } else if (pass.lastBatch > this.#lastMoved) {
      await this.#move(pass, pass.order, waitForLockMs);
    } else {
      const forget = () => this.#db.statement(deleteMoved).run(pass.lastBatch, stepUnrolled).changes;
      const isLast = (await this.#db.whenUnlocked(forget, waitForLockMs)) < stepUnrolled;
      if (isLast) this.#pass = undefined;
    }
  }

  totalOf(owner: TotalOf): SpanTotals {
    const totals = this.#waiting.totalOf(owner);
    if (this.#pass) add(totals, this.#pass.sums.totalOf(owner));
    return totals;
  }

  #begin(): Pass {
    const sums = this.#waiting;
    this.#waiting = new UsageSums("hour");
    return { sums, sorting: sums.inOrder(), order: undefined, done: 0, lastBatch: this.#lastBatch };
  }

  async #move(pass: Pass, order: readonly number[], waitForLockMs: number): Promise<void> {
    const { sums, lastBatch } = pass;
    const step = order.slice(pass.done, pass.done + stepSums);
    const isLast = pass.done + step.length === order.length;
    const taken = this.#lastTaken - 1;
    const work = () =>
      this.#db.transact(() => {
        for (const sum of step) if (!sums.isEmpty(sum)) this.#write(sums, sum);
        if (isLast) this.#note(0, String(lastBatch));
        else this.#note(taken, sums.textTakingAway(step));
      });
    await this.#db.whenUnlocked(work, waitForLockMs);
    for (const sum of step) sums.empty(sum);
    this.#lastTaken = taken;
    pass.done += step.length;
    if (isLast) this.#lastMoved = lastBatch;
  }

  #note(batch: number, sums: string): void {
    this.#db.statement("INSERT INTO usage_unrolled (batch, sums) VALUES (?, ?)").run(batch, sums);
  }

  #write(sums: UsageSums, sum: number): void {
    const add = this.#db.statement(sums.isByTag(sum) ? addToTagRollup : addToRollup);
    add.run(sums.rowAt(sum, "hour"));
    add.run(sums.rowAt(sum, "day"));
  }
}

/** Reports whether the text contains sums rather than request ids. Early versions stored batches as sums. */
function isSums(text: string): boolean {
  return (JSON.parse(text) as unknown[]).some((value) => typeof value === "number");
}

const recordsOfBatch = "SELECT * FROM usage_records WHERE request_id IN (SELECT value FROM json_each(?))";

/** Deletes rows that no longer count. The row with number 0, which marks them, is deleted last. */
const deleteMoved = `
  DELETE FROM usage_unrolled WHERE batch IN (
    SELECT batch FROM usage_unrolled WHERE batch <= ? ORDER BY batch = 0, batch LIMIT ?)`;

const addToRollup = addTo("usage_rollups", rollupColumns);
const addToTagRollup = addTo("usage_tag_rollups", { ...rollupColumns, key: [...rollupColumns.key, tagColumn] });
export const addToTotals = addTo("usage_totals", totalsColumns);

function addTo(table: string, { key, sums, times }: SumColumns): string {
  const columns = [...key, ...sums, ...times];
  const added = [
    ...sums.map((column) => `${column} = ${column} + excluded.${column}`),
    ...times.map((column, i) => `${column} = ${i === 0 ? "min" : "max"}(${column}, excluded.${column})`),
  ];
  return `
    INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})
    ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${added.join(", ")}`;
}
