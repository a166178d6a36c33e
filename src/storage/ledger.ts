// The ledger: every request is on the spool before it is sent, and its record from there in the database, once.
import type { Clock } from "../domain/clock.ts";
import { GatewayError, StartError } from "../domain/errors.ts";
import type { Log } from "../domain/log.ts";
import type { Ledger, LedgerEntry, TokenUsage, UsageBegin, UsageEnd, UsageTotals } from "../domain/usage.ts";
import type { Database } from "./database.ts";
import { syncCommits } from "./durable-commits.ts";
import { batchSize, LedgerDrain } from "./ledger-drain.ts";
import { recoverSpool } from "./ledger-recovery.ts";
import { prepareSpoolDirectory, type Segment, Spool } from "./spool.ts";
import { cleanBegin, cleanProgress, encodeLine, recordOf, type UsageProgress } from "./spool-format.ts";
import type { UsageOwner } from "./usage-rows.ts";

export interface SpoolLedgerOptions {
  db: Database;
  /** Of the spool alone; made where it is missing. */
  directory: string;
  log: Log;
  clock: Clock;
  /** How long a settled record waits at most for its batch. */
  drainMs?: number;
  segmentBytes?: number;
  /** A segment in use is closed after this time, so that a quiet server keeps no old lines. */
  segmentAgeMs?: number;
  /** Requests that still run are carried out of a segment that was closed this long ago. */
  carryAfterMs?: number;
  /** Settled records that are held in memory; more wait on the spool alone. */
  maxPending?: number;
}

/** A request that was not settled yet. */
interface OpenRequest {
  begin: UsageBegin;
  startedMs: number;
  progress: UsageProgress | undefined;
  /** Where its begin and its last checkpoint stand. */
  segment: Segment;
}

const maxBackOffMs = 5_000;
const syncEveryMs = 1_000;
/** At most so many requests are carried over at a time: a few milliseconds of work. */
const carryBatch = 256;
const retryAfterSeconds = 5;
/** How long `close` waits for requests that still run. */
const settleMs = 500;
const defaults = {
  drainMs: 200,
  segmentBytes: 4 * 1024 * 1024,
  segmentAgeMs: 60_000,
  carryAfterMs: 5_000,
  maxPending: 50_000,
};

export class SpoolLedger implements Ledger {
  readonly #db: Database;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #settings: typeof defaults;
  readonly #spool: Spool;
  readonly #drain: LedgerDrain;
  /** Oldest first. */
  readonly #open = new Set<OpenRequest>();
  #spoolFailing = false;
  #databaseFailing = false;
  #upkeepFailing = false;
  /** Nothing new is taken; then: what was settled before is drained. */
  #closing = false;
  #closed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The timer fires in this turn of the event loop. */
  #soon = false;
  #delayMs: number;
  #syncedMs: number;
  #round: Promise<void> | undefined;

  /** Resolves when what an earlier process left is in the database. Rejects with a StartError where it cannot be. */
  static async open(options: SpoolLedgerOptions): Promise<SpoolLedger> {
    try {
      prepareSpoolDirectory(options.directory);
      await recoverSpool(options);
      return new SpoolLedger(options);
    } catch (cause) {
      throw new StartError(
        `The usage that is kept in ${options.directory} cannot be taken over (${String(cause)}). ` +
          "See that this directory and the database can be written and that the disk is not full. Nothing is lost.",
        { cause },
      );
    }
  }

  private constructor({ db, directory, log, clock, ...settings }: SpoolLedgerOptions) {
    this.#db = db;
    this.#log = log;
    this.#clock = clock;
    this.#settings = { ...defaults, ...settings };
    const { segmentBytes, maxPending, drainMs } = this.#settings;
    this.#delayMs = drainMs;
    this.#syncedMs = clock.monotonicMs();
    this.#spool = new Spool({ directory, clock, segmentBytes });
    this.#drain = new LedgerDrain({ db, log, spool: this.#spool, maxPending });
  }

  begin(request: UsageBegin): LedgerEntry {
    const begin = cleanBegin(request);
    const segment = this.#writeBegin(begin);
    segment.pins++;
    const open: OpenRequest = { begin, startedMs: this.#clock.monotonicMs(), progress: undefined, segment };
    this.#open.add(open);
    this.#wake();
    return {
      progress: (usage, nanoUsd) => this.#progress(open, usage, nanoUsd),
      settle: (end) => this.#settle(open, end),
    };
  }

  /** Requests that were cut off a moment ago are about to settle; one that does not is on the spool. */
  async #untilSettled(): Promise<void> {
    const giveUpMs = this.#clock.monotonicMs() + settleMs;
    for (let waits = 0; this.#open.size > 0 && waits < settleMs / 10; waits++) {
      if (this.#clock.monotonicMs() > giveUpMs) return;
      await Bun.sleep(10);
    }
  }

  flush(): Promise<void> {
    return this.#drain.drain();
  }

  readTotals(owner: UsageOwner, use: (totals: UsageTotals) => void): Promise<void> {
    return this.#drain.readTotals(owner, use);
  }

  /**
   * Brings everything into the database and deletes what is no longer needed of the spool. Where the database cannot be
   * written it is logged, and the next start goes on. Requests that still run may be settled later: on the spool alone.
   */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    clearTimeout(this.#timer);
    await this.#round;
    await this.#untilSettled();
    try {
      await this.flush();
      await syncCommits(this.#db);
    } catch (error) {
      this.#respool();
      const { waiting, unspooled } = this.#drain;
      const fields = { records: waiting - unspooled, lost: unspooled };
      this.#log.error("ledger_left_on_spool", { detail: String(error), ...fields });
    }
    this.#closed = true;
    if (this.#open.size === 0) await this.#spool.close();
  }

  /** Requests must not be served where they might not be accounted for. */
  #writeBegin(begin: UsageBegin): Segment {
    const fail = (detail: string, cause?: unknown) =>
      new GatewayError(
        "service_unavailable",
        "The server cannot keep account of requests at the moment, so it takes none. Try again later.",
        { detail, retryAfterSeconds, cause },
      );
    if (this.#closing) throw fail("The ledger is closed.");
    try {
      return this.#write(encodeLine({ begin }));
    } catch (cause) {
      throw fail(`The spool cannot be written: ${String(cause)}`, cause);
    }
  }

  #progress(open: OpenRequest, usage: TokenUsage, nanoUsd: number | null): void {
    if (!this.#open.has(open)) return;
    const elapsedMs = this.#clock.monotonicMs() - open.startedMs;
    open.progress = cleanProgress({ ...usage, requestId: open.begin.requestId, nanoUsd, elapsedMs });
    try {
      if (this.#spool.ready() === open.segment) this.#write(encodeLine({ progress: open.progress }));
      else this.#carry(open);
    } catch {
      // #write has told it. Until the next checkpoint or the end, the last one that was written stands.
    }
    this.#wake();
  }

  #settle(open: OpenRequest, end: UsageEnd): void {
    if (!this.#open.delete(open)) return;
    const settled = { record: recordOf(open.begin, end), segment: open.segment, spooled: true };
    try {
      repin(settled, this.#write(encodeLine({ settle: settled.record })));
    } catch {
      // #write has told it. The record goes to the database from memory.
      settled.spooled = false;
    }
    if (!this.#closed) this.#drain.add(settled);
    else if (this.#open.size === 0) void this.#spool.close();
    this.#wake();
  }

  /** Throws where it is not written; the log is told of the first failure and of the end of it. */
  #write(lines: string): Segment {
    try {
      const segment = this.#spool.ready();
      this.#spool.append(lines);
      if (this.#spoolFailing) this.#log.info("ledger_spool_recovered");
      this.#spoolFailing = false;
      return segment;
    } catch (error) {
      if (!this.#spoolFailing) this.#log.error("ledger_spool_failed", { detail: String(error) });
      this.#spoolFailing = true;
      throw error;
    }
  }

  #respool(): void {
    this.#drain.respool((settled) => repin(settled, this.#write(encodeLine({ settle: settled.record }))));
  }

  /** Says all that is known of a request again in the current segment, so that the older one can go. */
  #carry(open: OpenRequest): void {
    const begin = encodeLine({ begin: open.begin });
    const lines = open.progress ? begin + encodeLine({ progress: open.progress }) : begin;
    const segment = this.#write(lines);
    segment.carriedBytes += Buffer.byteLength(lines);
    repin(open, segment);
  }

  /** Sees to it that what there is to do is done soon; nothing runs while there is nothing to do. */
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
    return this.#drain.waiting > 0 || segments.length > 1 || unsynced || current.bytes > current.carriedBytes;
  }

  async #work(): Promise<void> {
    try {
      await this.flush();
      if (this.#databaseFailing) this.#log.info("usage_write_recovered");
      this.#databaseFailing = false;
      this.#delayMs = this.#settings.drainMs;
    } catch (error) {
      if (!this.#databaseFailing) {
        this.#log.error("usage_write_failed", { detail: String(error), waiting: this.#drain.waiting });
      }
      this.#delayMs = this.#databaseFailing ? Math.min(this.#delayMs * 2, maxBackOffMs) : this.#settings.drainMs;
      this.#databaseFailing = true;
      this.#respool();
    }
    try {
      await this.#upkeep();
      this.#upkeepFailing = false;
    } catch (error) {
      if (!this.#upkeepFailing) this.#log.warn("ledger_upkeep_failed", { detail: String(error) });
      this.#upkeepFailing = true;
    }
  }

  /** Closes, syncs and deletes segments. */
  async #upkeep(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const { current } = this.#spool;
    const old = nowMs - current.openedMs >= this.#settings.segmentAgeMs;
    if (old && current.bytes > current.carriedBytes) this.#spool.rotate();
    this.#carryOver(nowMs);
    if (this.#spool.unsynced && nowMs - this.#syncedMs >= syncEveryMs) {
      this.#syncedMs = nowMs;
      await this.#spool.sync();
    }
    const free = this.#spool.segments.filter((one) => one !== this.#spool.current && one.pins === 0);
    if (free.length === 0) return;
    await syncCommits(this.#db);
    for (const segment of free) this.#spool.remove(segment);
  }

  /** Requests that run for long and say nothing must not keep old segments. */
  #carryOver(nowMs: number): void {
    const oldest = this.#spool.segments[0];
    if (oldest?.sealedMs === undefined || nowMs - oldest.sealedMs < this.#settings.carryAfterMs) return;
    let left = carryBatch;
    for (const open of this.#open) {
      if (open.segment !== oldest) continue;
      if (left-- === 0) return;
      try {
        this.#carry(open);
      } catch {
        return;
      }
    }
  }
}

function repin(held: { segment: Segment }, segment: Segment): void {
  held.segment.pins--;
  segment.pins++;
  held.segment = segment;
}
