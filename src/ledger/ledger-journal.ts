// The ledger's journal: collects the lines of all requests in one tick of the event loop and writes them to the spool
// together.
import type { Clock } from "../base/clock.ts";
import { Deferred, type MaybePromise } from "../base/deferred.ts";
import { errorCodes, GatewayError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { atTurnEnd } from "../base/turn-end.ts";
import type { Trail } from "../domain/usage/trail.ts";
import type { LedgerEntry, TokenUsage, UsageBegin, UsageEnd } from "../domain/usage/usage.ts";
import type { UsageParts } from "../domain/usage/usage-parts.ts";
import { detailsText } from "../storage/tables/details-text.ts";
import { shortTrailText } from "../storage/tables/trail-text.ts";
import { OpenEntries } from "./open-entries.ts";
import { repin, type Segment, type Spool } from "./spool.ts";
import { SpoolEncoder } from "./spool-encoder.ts";
import { cleanProgress, frameHeaderLength, type UsageProgress } from "./spool-format.ts";
import { UsageColumns } from "./usage/usage-columns.ts";
import { type RequestKind, requestKindOf, usageKindOf } from "./usage/usage-kinds.ts";

export interface LedgerJournalOptions {
  spool: Spool;
  log: Log;
  clock: Clock;
  /**
   * Called with each settled record after its write. The row is valid only during the call. `segment` contains the
   * record. If the write failed, `segment` contains only the line with which the request began.
   */
  onSettled(usage: UsageColumns, row: number, segment: Segment, isSpooled: boolean): void;
  /** Called after a tick's lines were written or the write failed. */
  onTurn(): void;
}

/** Maximum open requests that are copied to a new segment at once: a few milliseconds of work. */
const carryBatch = 256;
const maxCodeLength = Math.max(...errorCodes.map((code) => code.length));
/** Maximum length of an upstream's name (`upstreamNamePattern`). */
const maxNameLength = 63;
/**
 * Maximum bytes that a request's last line has more than its first line: outcome, error code, two flags, upstream, six
 * numbers, an empty attempt log, three token counts and empty details.
 */
const maxEndBytes =
  ',"interrupted"'.length +
  (',""'.length + maxCodeLength) +
  2 * ",false".length +
  (',""'.length + maxNameLength) +
  (6 + 3) * `,${Number.MAX_SAFE_INTEGER}`.length +
  2 * ",null".length;
/**
 * Bytes reserved for the attempt log and for details. On a full disk, longer details are omitted and longer logs
 * shortened.
 */
const keptTextBytes = 128;
/** Approximate bytes of a request's first and last line. */
const defaultBytes = 1_024;
const retryAfterSeconds = 5;
const nothingToWaitFor = new Deferred<void>();
nothingToWaitFor.resolve();

export class LedgerJournal {
  readonly #options: LedgerJournalOptions;
  /** Requests that have begun but not settled, oldest first. */
  readonly #open = new OpenEntries<JournalEntry>();
  /** The lines of this tick, and the requests that they belong to. */
  readonly #lines = new SpoolEncoder();
  readonly #settled: JournalEntry[] = [];
  readonly #carried: JournalEntry[] = [];
  /** The records of the requests in `#settled`. */
  readonly #usage = new UsageColumns(64);
  #turn: Tick | undefined;
  /** The disk space reserved for the last lines of all open requests, so that they can settle on a full disk. */
  #aheadBytes = 0;
  #failing = false;
  /** True if the last reservation succeeded, so the disk has more space than the journal has reserved. */
  #hasRoom = true;
  #failures = 0;

  constructor(options: LedgerJournalOptions) {
    this.#options = options;
  }

  /** The number of failed writes and failed reservations of space. */
  get failures(): number {
    return this.#failures;
  }

  /** True after a write or a reservation of space has failed, until the next recovery. */
  get failing(): boolean {
    return this.#failing;
  }

  get openCount(): number {
    return this.#open.size;
  }

  begin(begin: UsageBegin, startedMs: number): LedgerEntry {
    const isAlone = this.#isAlone;
    const before = this.#lines.length;
    const kind = requestKindOf(begin);
    this.#lines.begin(begin, kind);
    // Include a frame header, because the last line may be alone in its frame.
    const lastLineBytes = frameHeaderLength + this.#lines.length - before + maxEndBytes + keptTextBytes;
    const refusal = this.#reserve(lastLineBytes);
    if (refusal) {
      this.#lines.takeBack(before);
      return this.#refuse(begin, startedMs, refusal.cause);
    }
    const turn = this.#gather(isAlone);
    const entry = new JournalEntry(this, begin, kind, turn, startedMs, lastLineBytes);
    turn.segment.pins++;
    this.#opened(entry);
    if (isAlone) this.commit();
    return entry;
  }

  /**
   * Records a request that has already ended, such as one of a batch. Its first and last line are in one frame, so a
   * crash leaves both or neither. Rejects if the frame cannot be written.
   */
  async record(begin: UsageBegin, end: UsageEnd): Promise<void> {
    this.#gather();
    const entry = this.begin(begin, this.#options.clock.monotonicMs());
    const kept = entry.settle(end);
    await entry.begun;
    await kept;
  }

  progress(entry: JournalEntry, usage: TokenUsage, nanoUsd: number | null): void {
    if (!entry.isOpen) return;
    const elapsedMs = this.#options.clock.monotonicMs() - entry.startedMs;
    const parts = usage.parts && withShortDetails(usage.parts);
    entry.lastProgress = cleanProgress({ ...usage, parts, requestId: entry.begin.requestId, nanoUsd, elapsedMs });
    // If the disk is full, skip the checkpoint: the remaining space is for last lines. A checkpoint is never longer
    // than a last line.
    if (this.#reserve(entry.lastLineBytes)) return;
    const turn = this.#gather();
    if (turn.segment === entry.segment) this.#lines.progress(entry.lastProgress);
    else this.#carry(entry, turn);
  }

  settle(entry: JournalEntry, end: UsageEnd): MaybePromise<void> {
    if (!entry.isOpen) return entry.kept;
    const isAlone = this.#turn === undefined && this.#open.size === 1;
    // The reservation stays until `#gather` has prepared the segment for the line.
    const turn = this.#gather(isAlone);
    this.#closed(entry);
    const row = this.#usage.add(entry.begin, usageKindOf(entry.kind, end), end);
    const { trail, parts } = end;
    if (trail === undefined && parts?.details === undefined) this.#lines.settle(this.#usage, row);
    else this.#settleWithTexts(row, trail, entry.lastLineBytes);
    this.#settled.push(entry);
    entry.kept = turn.kept;
    if (isAlone) this.commit();
    return entry.kept;
  }

  /** Writes all collected lines, including those that waiting callers add meanwhile. */
  readonly commit = (): void => {
    while (this.#turn !== undefined) this.#write(this.#turn);
  };

  #write(turn: Tick): void {
    this.#turn = undefined;
    let failure: { cause: unknown } | undefined;
    // A frame with only copied lines counts as copied entirely, including its header. Otherwise a silent request would
    // be copied from segment to segment.
    const onlyCarried = turn.carriedBytes === this.#lines.length;
    const bytesBefore = turn.segment.bytes;
    try {
      this.#append(this.#lines.take());
      turn.segment.carriedBytes += onlyCarried ? turn.segment.bytes - bytesBefore : turn.carriedBytes;
    } catch (cause) {
      failure = { cause };
    }
    if (failure) this.#refused(turn, failure.cause);
    else this.#written(turn);
    this.#options.onTurn();
  }

  /**
   * Repeats failed writes of records, and returns the segment that contains them now. Throws if a write fails again.
   */
  repeat(usage: UsageColumns, rows: readonly number[]): Segment {
    this.commit();
    for (const row of rows) this.#lines.settle(usage, row);
    // The remaining space of a full disk is reserved for last lines of open requests.
    const refusal = this.#reserve(0);
    if (refusal) {
      this.#lines.takeBack(0);
      throw refusal.cause;
    }
    this.#append(this.#lines.take());
    return this.#options.spool.current;
  }

  /** Checks whether the disk has space again. If no requests arrive, nothing else would notice. */
  retry(): void {
    if (!this.#failing) return;
    this.commit();
    this.#options.spool.roomFound();
    // A failed write may have damaged the current file, so begin a new one.
    this.#options.spool.rotate(this.#aheadBytes);
    if (!this.#reserve(defaultBytes)) this.#recovered();
  }

  /** Begins a new segment. Lines collected before go to the previous one. */
  rotate(): void {
    this.commit();
    this.#options.spool.rotate(this.#aheadBytes);
  }

  /** Copies the state of open requests from an old segment to the current one, so that the old one can be deleted. */
  carryOver(from: Segment): void {
    this.commit();
    let remaining = carryBatch;
    for (const entry of this.#open) {
      if (entry.segment !== from) continue;
      if (remaining-- === 0 || this.#reserve(entry.lastLineBytes)) break;
      this.#carry(entry, this.#gather());
    }
    this.commit();
  }

  /**
   * True if no other request is open, so that no other line can follow in this tick. The line is then written
   * immediately.
   */
  get #isAlone(): boolean {
    return this.#turn === undefined && this.#open.size === 0;
  }

  /**
   * Returns the current tick, or begins one. If `isCommitted` is true, the caller commits before it returns. Otherwise,
   * `commit` runs at the end of the tick.
   */
  #gather(isCommitted = false): Tick {
    if (this.#turn === undefined) {
      this.#turn = new Tick(this.#options.spool.ready(this.#aheadBytes));
      if (!isCommitted) atTurnEnd(this.commit);
    }
    return this.#turn;
  }

  #carry(entry: JournalEntry, turn: Tick): void {
    const before = this.#lines.length;
    this.#lines.begin(entry.begin, entry.kind);
    if (entry.lastProgress) this.#lines.progress(entry.lastProgress);
    turn.carriedBytes += this.#lines.length - before;
    this.#carried.push(entry);
  }

  #written(turn: Tick): void {
    for (const entry of this.#carried) repin(entry, turn.segment);
    for (let row = 0; row < this.#settled.length; row++) {
      const entry = this.#settled[row];
      if (entry === undefined) break;
      repin(entry, turn.segment);
      this.#options.onSettled(this.#usage, row, turn.segment, true);
    }
    this.#forgetTurn();
    turn.keep();
  }

  /**
   * Handles a failed write. Requests that began in this tick are refused; none was sent to an engine yet. Settled
   * requests go from memory to the database.
   */
  #refused(turn: Tick, cause: unknown): void {
    for (;;) {
      const entry = this.#open.newest;
      if (entry?.begun !== turn.written) break;
      entry.segment.pins--;
      this.#closed(entry);
    }
    for (const [row, entry] of this.#settled.entries()) {
      if (entry.begun === turn.written) entry.segment.pins--;
      else this.#options.onSettled(this.#usage, row, entry.segment, false);
    }
    this.#forgetTurn();
    turn.refuse(unwritable(cause));
  }

  #opened(entry: JournalEntry): void {
    this.#open.add(entry);
    this.#aheadBytes += entry.lastLineBytes;
  }

  #closed(entry: JournalEntry): void {
    this.#open.delete(entry);
    this.#aheadBytes -= entry.lastLineBytes;
  }

  /**
   * Writes a last line with an attempt log or details. If they need more than the reserved space and the disk is full,
   * they are omitted or shortened.
   */
  #settleWithTexts(row: number, trail: Trail | undefined, lastLineBytes: number): void {
    const before = this.#lines.length;
    this.#lines.settle(this.#usage, row);
    const tooMany = frameHeaderLength + this.#lines.length - before - lastLineBytes;
    if (tooMany <= 0 || this.#isRoomForLines()) return;
    this.#lines.takeBack(before);
    const detailBytes = this.#usage.detailsAt(row)?.length ?? 0;
    this.#usage.dropDetails(row);
    if (trail !== undefined && tooMany > detailBytes) {
      const maxBytes = Buffer.byteLength(this.#usage.trailAt(row) ?? "") + detailBytes - tooMany;
      this.#usage.setTrail(row, shortTrailText(trail, maxBytes));
    }
    this.#lines.settle(this.#usage, row);
  }

  /** Reports whether the disk has space for the collected lines and for the last lines of all open requests. */
  #isRoomForLines(): boolean {
    try {
      this.#options.spool.reserve(frameHeaderLength + this.#lines.length + this.#aheadBytes);
      return true;
    } catch {
      return false;
    }
  }

  /** Refuses a request for lack of disk space. Writes nothing. */
  #refuse(begin: UsageBegin, startedMs: number, cause: unknown): LedgerEntry {
    const turn = new Tick(this.#options.spool.current);
    turn.refuse(unwritable(cause));
    return new JournalEntry(this, begin, requestKindOf(begin), turn, startedMs, 0);
  }

  /**
   * Reserves disk space besides that for the collected lines and for the last lines of open requests. Returns the error
   * if that fails. Usually costs one comparison.
   */
  #reserve(bytes: number): { cause: unknown } | undefined {
    const { spool } = this.#options;
    try {
      if (this.#turn === undefined) spool.ready(this.#aheadBytes);
      spool.reserve(frameHeaderLength + this.#lines.length + this.#aheadBytes + bytes);
      this.#hasRoom = true;
      return undefined;
    } catch (cause) {
      this.#failed(cause);
      this.#hasRoom = false;
      return { cause };
    }
  }

  #forgetTurn(): void {
    this.#settled.length = 0;
    this.#carried.length = 0;
    this.#usage.clear();
  }

  /** Appends a frame to the spool. Throws if that fails. Logs the first failure and the recovery. */
  #append(frame: Uint8Array): void {
    try {
      this.#options.spool.append(frame);
      // If unreserved space is left, the spool has recovered. A successful write alone proves nothing, because it may
      // use reserved space.
      if (this.#failing && this.#hasRoom) this.#recovered();
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  #recovered(): void {
    this.#failing = false;
    this.#options.log.info("ledger_spool_recovered");
  }

  #failed(cause: unknown): void {
    this.#failures++;
    if (!this.#failing) this.#options.log.error("ledger_spool_failed", { detail: String(cause) });
    this.#failing = true;
  }
}

/** A request whose beginning is recorded and whose end is not. */
class JournalEntry implements LedgerEntry {
  readonly begin: UsageBegin;
  readonly kind: RequestKind;
  readonly begun: MaybePromise<void>;
  readonly startedMs: number;
  /** Maximum bytes of the request's last line. A longer one is written only if the disk has space at that moment. */
  readonly lastLineBytes: number;
  /** The segment that contains the request's first line and last checkpoint. */
  segment: Segment;
  lastProgress: UsageProgress | undefined = undefined;
  kept: MaybePromise<void> = nothingToWaitFor;
  /** Members for the linked list in `OpenEntries`. */
  isOpen = false;
  older: JournalEntry | undefined = undefined;
  newer: JournalEntry | undefined = undefined;
  readonly #journal: LedgerJournal;

  constructor(
    journal: LedgerJournal,
    begin: UsageBegin,
    kind: RequestKind,
    turn: Tick,
    startedMs: number,
    lastLineBytes: number,
  ) {
    this.#journal = journal;
    this.begin = begin;
    this.kind = kind;
    this.lastLineBytes = lastLineBytes;
    this.begun = turn.written;
    this.startedMs = startedMs;
    this.segment = turn.segment;
  }

  progress(usage: TokenUsage, nanoUsd: number | null): void {
    this.#journal.progress(this, usage, nanoUsd);
  }

  settle(end: UsageEnd): MaybePromise<void> {
    return this.#journal.settle(this, end);
  }
}

/** The lines of one tick of the event loop. All requests of the tick share its promises. */
class Tick {
  /** The segment that all lines of the tick go to. */
  readonly segment: Segment;
  carriedBytes = 0;
  /** Rejects if the write fails. */
  readonly written = new Deferred<void>();
  /** Resolves whether or not the write succeeds. */
  readonly kept = new Deferred<void>();

  constructor(segment: Segment) {
    this.segment = segment;
  }

  keep(): void {
    this.written.resolve();
    this.kept.resolve();
  }

  refuse(error: GatewayError): void {
    this.written.reject(error);
    this.kept.resolve();
  }
}

/** Removes long details from a checkpoint, because they may exceed the reserved space. */
function withShortDetails(parts: UsageParts): UsageParts {
  const { details } = parts;
  return (detailsText(details)?.length ?? 0) > keptTextBytes ? { ...parts, details: undefined } : parts;
}

function unwritable(cause: unknown): GatewayError {
  return unavailable(`The spool cannot be written: ${String(cause)}`, cause);
}

/** Returns the error for a refused request: a request that cannot be recorded must not be served. */
export function unavailable(detail: string, cause?: unknown): GatewayError {
  return new GatewayError(
    "service_unavailable",
    "The server cannot keep account of requests at the moment, so it takes none. Try again later.",
    { detail, retryAfterSeconds, cause },
  );
}
