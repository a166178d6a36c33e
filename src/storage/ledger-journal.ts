// The ledger's journal: what is said of all requests in one turn of the event loop goes to the spool in one write.
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import { type Eventual, Later } from "../domain/later.ts";
import type { Log } from "../domain/log.ts";
import { atTurnEnd } from "../domain/turn-end.ts";
import type { LedgerEntry, TokenUsage, UsageBegin, UsageEnd } from "../domain/usage.ts";
import { OpenEntries } from "./open-entries.ts";
import { repin, type Segment, type Spool } from "./spool.ts";
import { SpoolEncoder } from "./spool-encoder.ts";
import { cleanProgress, type UsageProgress } from "./spool-format.ts";
import { UsageColumns } from "./usage-columns.ts";
import { type RequestKind, requestKindOf, usageKindOf } from "./usage-kinds.ts";

export interface LedgerJournalOptions {
  spool: Spool;
  log: Log;
  clock: Clock;
  /**
   * Gets each record once its write was tried: a row of `usage`, which holds it during the call alone. It pins `segment`, in
   * which it stands; where the spool could not take it, in which its begin does.
   */
  onSettled(usage: UsageColumns, row: number, segment: Segment, isSpooled: boolean): void;
  /** Called after what was gathered in a turn was written, or could not be. */
  onTurn(): void;
}

/** At most so many requests are carried over at a time: a few milliseconds of work. */
const carryBatch = 256;
const retryAfterSeconds = 5;
const nothingToWaitFor = new Later<void>();
nothingToWaitFor.resolve();

export class LedgerJournal {
  readonly #options: LedgerJournalOptions;
  /** Begun and not settled; oldest first. */
  readonly #open = new OpenEntries<JournalEntry>();
  /** What was said in this turn: its lines, and whose they are. */
  readonly #lines = new SpoolEncoder();
  readonly #settled: JournalEntry[] = [];
  readonly #carried: JournalEntry[] = [];
  /** The records of `#settled`. */
  readonly #usage = new UsageColumns(64);
  #turn: Turn | undefined;
  #failing = false;
  #failures = 0;

  constructor(options: LedgerJournalOptions) {
    this.#options = options;
  }

  /** Writes that the spool refused. */
  get failures(): number {
    return this.#failures;
  }

  get openCount(): number {
    return this.#open.size;
  }

  begin(begin: UsageBegin, startedMs: number): LedgerEntry {
    const isAlone = this.#isAlone;
    const turn = this.#gather(isAlone);
    const entry = new JournalEntry(this, begin, turn, startedMs);
    this.#lines.begin(begin, entry.kind);
    turn.segment.pins++;
    this.#open.add(entry);
    if (isAlone) this.commit();
    return entry;
  }

  progress(entry: JournalEntry, usage: TokenUsage, nanoUsd: number | null): void {
    if (!entry.isOpen) return;
    const elapsedMs = this.#options.clock.monotonicMs() - entry.startedMs;
    entry.lastProgress = cleanProgress({ ...usage, requestId: entry.begin.requestId, nanoUsd, elapsedMs });
    const turn = this.#gather();
    if (turn.segment === entry.segment) this.#lines.progress(entry.lastProgress);
    else this.#carry(entry, turn);
  }

  settle(entry: JournalEntry, end: UsageEnd): Eventual<void> {
    if (!entry.isOpen) return entry.kept;
    this.#open.delete(entry);
    const isAlone = this.#isAlone;
    const turn = this.#gather(isAlone);
    const row = this.#usage.add(entry.begin, usageKindOf(entry.kind, end), end);
    this.#lines.settle(this.#usage, row);
    this.#settled.push(entry);
    entry.kept = turn.kept;
    if (isAlone) this.commit();
    return entry.kept;
  }

  /**
   * Writes what this turn has gathered so far now; those who wait for it go on, and what they say at once is written as
   * well: whoever calls it relies on it that nothing is left. Does nothing where there is nothing.
   */
  readonly commit = (): void => {
    while (this.#turn !== undefined) this.#write(this.#turn);
  };

  #write(turn: Turn): void {
    this.#turn = undefined;
    let failure: { cause: unknown } | undefined;
    // Then its frame says nothing new either: else a request that is silent would be carried on from segment to segment.
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

  /** Says again at once what could not be written in time, and gives the segment in which it stands then. Throws where it still cannot. */
  repeat(usage: UsageColumns, rows: readonly number[]): Segment {
    this.commit();
    const segment = this.#options.spool.ready();
    for (const row of rows) this.#lines.settle(usage, row);
    this.#append(this.#lines.take());
    return segment;
  }

  /** Begins a new segment; what was gathered belongs to the one before. */
  rotate(): void {
    this.commit();
    this.#options.spool.rotate();
  }

  /** Says all that is known of requests that still run again in the current segment, so that an older one can go. */
  carryOver(from: Segment): void {
    this.commit();
    let left = carryBatch;
    for (const entry of this.#open) {
      if (entry.segment !== from) continue;
      if (left-- === 0) break;
      this.#carry(entry, this.#gather());
    }
    this.commit();
  }

  /** Nobody else runs who could have something to say in this turn: who speaks then writes it at once. */
  get #isAlone(): boolean {
    return this.#turn === undefined && this.#open.size === 0;
  }

  /** `isCommitted`: by the caller, in this call. */
  #gather(isCommitted = false): Turn {
    if (this.#turn === undefined) {
      this.#turn = new Turn(this.#options.spool.ready());
      if (!isCommitted) atTurnEnd(this.commit);
    }
    return this.#turn;
  }

  #carry(entry: JournalEntry, turn: Turn): void {
    const before = this.#lines.length;
    this.#lines.begin(entry.begin, entry.kind);
    if (entry.lastProgress) this.#lines.progress(entry.lastProgress);
    turn.carriedBytes += this.#lines.length - before;
    this.#carried.push(entry);
  }

  #written(turn: Turn): void {
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

  /** What began is void, as nobody was told that it could be sent. What was settled goes to the database from memory. */
  #refused(turn: Turn, cause: unknown): void {
    for (;;) {
      const entry = this.#open.newest;
      if (entry?.begun !== turn.written) break;
      entry.segment.pins--;
      this.#open.delete(entry);
    }
    for (const [row, entry] of this.#settled.entries()) {
      if (entry.begun === turn.written) entry.segment.pins--;
      else this.#options.onSettled(this.#usage, row, entry.segment, false);
    }
    this.#forgetTurn();
    turn.refuse(unavailable(`The spool cannot be written: ${String(cause)}`, cause));
  }

  #forgetTurn(): void {
    this.#settled.length = 0;
    this.#carried.length = 0;
    this.#usage.clear();
  }

  /** Throws where it is not written; the log is told of the first failure and of the end of it. */
  #append(frame: Uint8Array): void {
    const { spool, log } = this.#options;
    try {
      spool.append(frame);
      if (this.#failing) log.info("ledger_spool_recovered");
      this.#failing = false;
    } catch (error) {
      this.#failures++;
      if (!this.#failing) log.error("ledger_spool_failed", { detail: String(error) });
      this.#failing = true;
      throw error;
    }
  }
}

/** A request as its journal knows it. */
class JournalEntry implements LedgerEntry {
  readonly begin: UsageBegin;
  readonly kind: RequestKind;
  readonly begun: Eventual<void>;
  readonly startedMs: number;
  /** Where its begin and its last checkpoint stand. */
  segment: Segment;
  lastProgress: UsageProgress | undefined = undefined;
  kept: Eventual<void> = nothingToWaitFor;
  /** As `OpenEntries` has them. */
  isOpen = false;
  older: JournalEntry | undefined = undefined;
  newer: JournalEntry | undefined = undefined;
  readonly #journal: LedgerJournal;

  constructor(journal: LedgerJournal, begin: UsageBegin, turn: Turn, startedMs: number) {
    this.#journal = journal;
    this.begin = begin;
    this.kind = requestKindOf(begin);
    this.begun = turn.written;
    this.startedMs = startedMs;
    this.segment = turn.segment;
  }

  progress(usage: TokenUsage, nanoUsd: number | null): void {
    this.#journal.progress(this, usage, nanoUsd);
  }

  settle(end: UsageEnd): Eventual<void> {
    return this.#journal.settle(this, end);
  }
}

/** What was said in one turn of the event loop. All who wait for it share what it tells them. */
class Turn {
  /** Where all of it goes: whoever begins a new segment commits first. */
  readonly segment: Segment;
  carriedBytes = 0;
  /** Rejects where it cannot be written. */
  readonly written = new Later<void>();
  /** Resolves in either case. */
  readonly kept = new Later<void>();

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

/** Requests must not be served where they might not be accounted for. */
export function unavailable(detail: string, cause?: unknown): GatewayError {
  return new GatewayError(
    "service_unavailable",
    "The server cannot keep account of requests at the moment, so it takes none. Try again later.",
    { detail, retryAfterSeconds, cause },
  );
}
