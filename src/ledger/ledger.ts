// The ledger of usage: every request is written to the spool before it is sent. Its record later goes into the database
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
  /** Directory for the spool and nothing else; created if missing. */
  directory: string;
  log: Log;
  clock: Clock;
  /** Maximum milliseconds for which a settled record waits, so that records are written in batches. */
  drainMs?: number;
  segmentBytes?: number;
  /** Age in milliseconds at which the current segment is closed, so that an idle server keeps no old lines. */
  segmentAgeMs?: number;
  /** Age in milliseconds of a closed segment at which its open requests are copied to the current one. */
  carryAfterMs?: number;
  /** Maximum settled records in memory; further ones are only in the spool. */
  maxPending?: number;
  /**
   * Set if this process writes beside another one. Undefined: only this process, and processes that it started with
   * `beside`, use the database and the spool.
   */
  beside?: BesideOthers | undefined;
}

/** Options of a process that shares the spool and database with others. */
export interface BesideOthers {
  /** Number of this process, from 1. */
  writer: number;
  /** Id of the installation that the usage belongs to. Undefined means the id in the database. */
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
/** If retries are at least this many milliseconds apart, the database is reported as failing. */
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
  /** The usage that the start imported from an earlier process. */
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
  /** True if the timer was set to fire immediately. */
  #soon = false;
  #delayMs: number;
  #syncedMs: number;
  #round: Promise<void> | undefined;

  /** Opens the ledger. Resolves when an earlier process's usage is in the database. Rejects with a StartError. */
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
        // After closing, records stay in the spool for the next start.
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
   * Records a request that has already ended. A repeated call for the same request counts it once. Resolves when the
   * record survives `kill -9`; rejects with `service_unavailable` otherwise.
   */
  async record(begin: UsageBegin, end: UsageEnd): Promise<void> {
    if (this.#closing) throw unavailable("The ledger is closed.");
    await this.#journal.record(begin, end);
  }

  /** Waits a short time for cancelled requests to settle. Later ones stay in the spool. */
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

  /** Brings the roll-ups up to date for a reader. Never rejects: if it fails, roll-ups are incomplete. */
  async catchUp(): Promise<void> {
    // Ignore the error: it is logged by the regular writes, and readiness reports it.
    await this.rollUp().catch(() => {});
  }

  /**
   * Brings the roll-ups up to date, or rejects. Call this before records are deleted, because then only the roll-ups
   * remain.
   */
  rollUp(): Promise<void> {
    return this.#drain.catchUp();
  }

  readTotals(owner: TotalsOwner, use: (totals: SpanTotals) => void): Promise<void> {
    return this.#drain.readTotals(owner, use);
  }

  /**
   * Passes an owner's usage that is not in the database yet to `use`. Until `until` settles, nothing is written to the
   * database.
   */
  hold(owner: TotalsOwner, use: (waiting: SpanTotals) => void, until: Promise<void>): Promise<void> {
    return this.#drain.hold(owner, use, until);
  }

  /** Reports whether requests can be recorded, as of the last write or check. If not, requests are refused. */
  get isWritable(): boolean {
    return this.#probe.isWritable;
  }

  /** Reports whether the spool's last sync succeeded. If not, a power cut may lose more than the last second. */
  get isSpoolKept(): boolean {
    return this.#spool.keeps;
  }

  /** Reports whether the database accepts usage. A failure that lasts only a moment does not count. */
  get isDrained(): boolean {
    return !this.#databaseFailing || this.#delayMs < judgedMs;
  }

  /** Checks the disk, unless it was checked just now, and resolves to `isWritable`. Never rejects. */
  checkDisk(): Promise<boolean> {
    return this.#probe.ask();
  }

  /** Figures for metrics: open requests, bytes of the spool, and records that are not in the database yet. */
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
   * Writes all records into the database and deletes spool files that are no longer needed. A failure is logged, and
   * the next start continues. Requests that are still open can settle later in the spool.
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

  /** Schedules the next round of writes. No timer runs without work. */
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

  /** Closes, syncs and deletes segments of the spool. */
  async #maintenance(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const { current } = this.#spool;
    const old = nowMs - current.openedMs >= this.#settings.segmentAgeMs;
    // If somebody deleted the current file, begin a new one; otherwise its requests would be lost with this process.
    const isDeleted = !existsSync(current.path);
    if (isDeleted) prepareSpoolDirectory(this.#spool.directory);
    if (isDeleted || (old && current.bytes > current.carriedBytes)) this.#journal.rotate();
    if (isDeleted && this.#spool.current !== current)
      this.#log.error("spool_file_deleted", { detail: `Somebody deleted ${current.path} while it was in use.` });
    this.#carryOver(nowMs);
    await this.#removeFree();
    // Sync last, because deleted files need no sync.
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

  /** Copies open requests from the oldest segment, so that a long request does not keep an old file. */
  #carryOver(nowMs: number): void {
    const oldest = this.#spool.segments[0];
    if (oldest?.sealedMs === undefined || nowMs - oldest.sealedMs < this.#settings.carryAfterMs) return;
    this.#journal.carryOver(oldest);
  }
}
