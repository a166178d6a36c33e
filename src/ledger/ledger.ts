// The ledger: every request is written to the spool before it is sent, and its record later goes into the database
// exactly once.
import { existsSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import { StartError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type {
  Ledger,
  LedgerEntry,
  SpanTotals,
  TotalsOwner,
  UsageBegin,
  UsageEnd,
  UsageRecord,
} from "../domain/usage/usage.ts";
import type { Database } from "../storage/sql/database.ts";
import { syncCommits } from "../storage/sql/durable-commits.ts";
import { LedgerDrain } from "./ledger-drain.ts";
import { LedgerJournal, unavailable } from "./ledger-journal.ts";
import { type Recovered, recoverSpool } from "./ledger-recovery.ts";
import { batchSize } from "./pending-usage.ts";
import { prepareSpoolDirectory, Spool } from "./spool.ts";
import { SpoolProbe } from "./spool-probe.ts";
import { openUsageWriter, type UsageWriter } from "./usage/usage-writer.ts";

export interface SpoolLedgerOptions {
  db: Database;
  /** The directory for the spool alone; created if missing. */
  directory: string;
  log: Log;
  clock: Clock;
  /** The most milliseconds for which a settled record waits for its batch. */
  drainMs?: number;
  segmentBytes?: number;
  /** The age at which a segment in use is closed, so that a quiet server keeps no old lines. */
  segmentAgeMs?: number;
  /** The age of a closed segment from which on its open requests are carried over. */
  carryAfterMs?: number;
  /** The most settled records in memory; further ones wait only in the spool. */
  maxPending?: number;
  /**
   * Set if this process writes beside another one. Undefined: only this process, and processes that it started with
   * `beside`, use the database and the spool.
   */
  beside?: BesideOthers | undefined;
}

/** Options of a process that shares the spool and database with others. */
export interface BesideOthers {
  /** The number of this process, from 1. */
  writer: number;
  /** See `UsageWriterOptions`. */
  installation: string | undefined;
  /** Called with the requests that this process's predecessor left in the spool; see `RecoveryOptions`. */
  onRecords(records: readonly UsageRecord[]): void;
}

export interface LedgerFigures {
  open: number;
  spoolBytes: number;
  pending: number;
  /** Numbers of failed writes to the database and to the spool. */
  databaseFailures: number;
  spoolFailures: number;
}

const maxBackOffMs = 5_000;
/** The back-off, in milliseconds, from which on the database counts as failing. */
const judgedMs = 1_000;
const syncEveryMs = 1_000;
/** The milliseconds for which `close` waits for open requests. */
const settleMs = 500;
const defaults = {
  drainMs: 200,
  segmentBytes: 4 * 1024 * 1024,
  segmentAgeMs: 60_000,
  carryAfterMs: 5_000,
  maxPending: 50_000,
};

export class SpoolLedger implements Ledger {
  /** The usage of an earlier process that the start imported. */
  readonly recovered: Recovered;
  readonly #db: Database;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #settings: typeof defaults;
  readonly #spool: Spool;
  readonly #journal: LedgerJournal;
  readonly #drain: LedgerDrain;
  readonly #probe: SpoolProbe;
  readonly #writer: UsageWriter;
  #databaseFailing = false;
  #databaseFailures = 0;
  #maintenanceFailing = false;
  /** True while the ledger closes: it accepts no new requests, and drains settled records. */
  #closing = false;
  #closed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** True if the timer fires in this tick of the event loop. */
  #soon = false;
  #delayMs: number;
  #syncedMs: number;
  #round: Promise<void> | undefined;

  /** Resolves when an earlier process's usage is in the database. Rejects with a StartError if that fails. */
  static async open(options: SpoolLedgerOptions): Promise<SpoolLedger> {
    let writer: UsageWriter | undefined;
    try {
      prepareSpoolDirectory(options.directory);
      const { beside, ...others } = options;
      writer = await openUsageWriter(options.db, {
        ...{ clock: options.clock, isAlone: beside === undefined, installation: beside?.installation },
      });
      const recovered = await recoverSpool({ ...others, writer, of: beside?.writer, onRecords: beside?.onRecords });
      return new SpoolLedger(options, writer, recovered);
    } catch (cause) {
      writer?.close();
      throw new StartError(
        `The usage that is kept in ${options.directory} cannot be taken over (${String(cause)}). ` +
          "See that this directory and the database can be written and that the disk is not full. Nothing is lost.",
        { cause },
      );
    }
  }

  private constructor(options: SpoolLedgerOptions, writer: UsageWriter, recovered: Recovered) {
    const { db, directory, log, clock, beside, ...settings } = options;
    this.recovered = recovered;
    this.#db = db;
    this.#log = log;
    this.#clock = clock;
    this.#writer = writer;
    this.#settings = { ...defaults, ...settings };
    const { segmentBytes, maxPending, drainMs } = this.#settings;
    this.#delayMs = drainMs;
    this.#syncedMs = clock.monotonicMs();
    const spool = new Spool({ directory, clock, segmentBytes, writer: beside?.writer ?? 0 });
    this.#spool = spool;
    this.#journal = new LedgerJournal({
      spool,
      log,
      clock,
      onSettled: (usage, row, segment, isSpooled) => {
        // A closed ledger does not drain; the next start finds the record in the spool.
        if (!this.#closed) this.#drain.add(usage, row, segment, isSpooled);
      },
      onTurn: () => this.#afterTurn(),
    });
    this.#drain = new LedgerDrain({ db, writer, log, spool, journal: this.#journal, maxPending });
    this.#probe = new SpoolProbe({ directory, journal: this.#journal, clock, log });
  }

  begin(request: UsageBegin, startedMs = this.#clock.monotonicMs()): LedgerEntry {
    if (this.#closing) throw unavailable("The ledger is closed.");
    return this.#journal.begin(request, startedMs);
  }

  /**
   * Records a request that ended elsewhere. If it is called again for the same request, the request still counts once.
   * Resolves when the record survives `kill -9`; rejects with `service_unavailable` if that is impossible.
   */
  async record(begin: UsageBegin, end: UsageEnd): Promise<void> {
    if (this.#closing) throw unavailable("The ledger is closed.");
    await this.#journal.record(begin, end);
  }

  /** Waits for requests that were just cut off and are about to settle; others stay in the spool. */
  async #untilSettled(): Promise<void> {
    const giveUpMs = this.#clock.monotonicMs() + settleMs;
    for (let waits = 0; this.#journal.openCount > 0 && waits < settleMs / 10; waits++) {
      if (this.#clock.monotonicMs() > giveUpMs) return;
      await Bun.sleep(10);
    }
  }

  flush(): Promise<void> {
    return this.#drain.drain();
  }

  /**
   * Brings the roll-ups up to date for a reader. Resolves when they contain all records of the database, or when that
   * has failed.
   */
  async catchUp(): Promise<void> {
    // The failure needs no handling: the rounds log it, and readiness reports that the database takes no usage.
    await this.rollUp().catch(() => {});
  }

  /**
   * Does the same as `catchUp`, but rejects if the roll-ups are incomplete: for the deletion of records, after which
   * only the roll-ups remain.
   */
  rollUp(): Promise<void> {
    return this.#drain.catchUp();
  }

  readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void> {
    return this.#drain.readTotals(owner, use);
  }

  /** See `LedgerDrain.hold`. */
  hold(owner: TotalsOwner, use: (waiting: SpanTotals) => void, until: Promise<void>): Promise<void> {
    return this.#drain.hold(owner, use, until);
  }

  /** Reports whether requests can be recorded, as of the last write or check. Otherwise none is accepted. */
  get isWritable(): boolean {
    return this.#probe.isWritable;
  }

  /** Reports whether the spool's last sync succeeded. Otherwise a power cut may lose more than the last second. */
  get isSpoolKept(): boolean {
    return this.#spool.keeps;
  }

  /**
   * Reports whether the database accepts usage, as of the last batches; a short lock of another program does not count.
   */
  get isDrained(): boolean {
    return !this.#databaseFailing || this.#delayMs < judgedMs;
  }

  /**
   * Checks the disk unless that was just done, and returns `isWritable`. Never rejects, and takes as long as the disk.
   */
  checkDisk(): Promise<boolean> {
    return this.#probe.ask();
  }

  /**
   * Returns the number of open requests, bytes of the spool's files, and settled records that are not in the database
   * yet.
   */
  get figures(): LedgerFigures {
    return {
      open: this.#journal.openCount,
      spoolBytes: this.#spool.segments.reduce((sum, { bytes }) => sum + bytes, 0),
      pending: this.#drain.waiting,
      databaseFailures: this.#databaseFailures,
      spoolFailures: this.#journal.failures,
    };
  }

  /**
   * Writes everything into the database and deletes segments that are no longer needed. A database failure is logged,
   * and the next start continues. Open requests may settle later, only in the spool.
   */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    clearTimeout(this.#timer);
    await this.#round;
    await this.#untilSettled();
    try {
      await this.#drain.drainAll();
      await syncCommits(this.#db);
    } catch (error) {
      this.#drain.respool();
      const { waiting, unspooled } = this.#drain;
      const fields = { records: waiting - unspooled, lost: unspooled };
      this.#log.error("ledger_left_on_spool", { detail: String(error), ...fields });
    }
    this.#journal.commit();
    this.#closed = true;
    this.#writer.close();
    if (this.#journal.openCount === 0) await this.#spool.close();
  }

  #afterTurn(): void {
    if (this.#closed && this.#journal.openCount === 0) void this.#spool.close();
    this.#wake();
  }

  /** Schedules waiting work; no timer runs without work. */
  #wake(): void {
    if (this.#closing || this.#round) return;
    const soon = !this.#databaseFailing && this.#drain.pending >= batchSize;
    if (this.#timer !== undefined && (this.#soon || !soon)) return;
    clearTimeout(this.#timer);
    this.#soon = soon;
    this.#timer = setTimeout(() => this.#start(), soon ? 0 : this.#delayMs);
  }

  #start(): void {
    this.#timer = undefined;
    this.#round = this.#work().finally(() => {
      this.#round = undefined;
      if (this.#busy) this.#wake();
    });
  }

  get #busy(): boolean {
    const { current, segments, unsynced } = this.#spool;
    if (this.#drain.waiting > 0 || this.#writer.rollups.isBehind) return true;
    return segments.length > 1 || unsynced || current.bytes > current.carriedBytes;
  }

  async #work(): Promise<void> {
    try {
      await this.#drain.drain();
      if (this.#databaseFailing) this.#log.info("usage_write_recovered");
      this.#databaseFailing = false;
      this.#delayMs = this.#settings.drainMs;
    } catch (error) {
      this.#databaseFailures++;
      if (!this.#databaseFailing) {
        this.#log.error("usage_write_failed", { detail: String(error), waiting: this.#drain.waiting });
      }
      this.#delayMs = this.#databaseFailing ? Math.min(this.#delayMs * 2, maxBackOffMs) : this.#settings.drainMs;
      this.#databaseFailing = true;
      this.#drain.respool();
    }
    try {
      await this.#maintenance();
      this.#maintenanceFailing = false;
    } catch (error) {
      if (!this.#maintenanceFailing) this.#log.warn("ledger_upkeep_failed", { detail: String(error) });
      this.#maintenanceFailing = true;
    }
  }

  /** Closes, syncs and deletes segments. */
  async #maintenance(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const { current } = this.#spool;
    const old = nowMs - current.openedMs >= this.#settings.segmentAgeMs;
    // A new segment replaces a file that was deleted: if the process died now, its requests would be lost.
    const isDeleted = !existsSync(current.path);
    if (isDeleted) prepareSpoolDirectory(this.#spool.directory);
    if (isDeleted || (old && current.bytes > current.carriedBytes)) this.#journal.rotate();
    if (isDeleted && this.#spool.current !== current)
      this.#log.error("spool_file_deleted", { detail: `Somebody deleted ${current.path} while it was in use.` });
    this.#carryOver(nowMs);
    await this.#removeFree();
    // The sync comes last, because deleted files need none.
    if (!this.#spool.unsynced || nowMs - this.#syncedMs < syncEveryMs) return;
    this.#syncedMs = nowMs;
    await this.#spool.sync();
  }

  async #removeFree(): Promise<void> {
    const free = this.#spool.segments.filter((one) => one !== this.#spool.current && one.pins === 0);
    if (free.length === 0) return;
    await syncCommits(this.#db);
    for (const segment of free) this.#spool.remove(segment);
  }

  /** Carries over open requests from old segments, because a long and silent request must not keep an old segment. */
  #carryOver(nowMs: number): void {
    const oldest = this.#spool.segments[0];
    if (oldest?.sealedMs === undefined || nowMs - oldest.sealedMs < this.#settings.carryAfterMs) return;
    this.#journal.carryOver(oldest);
  }
}
