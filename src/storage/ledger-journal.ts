// The ledger's journal: what is said of all requests in one turn of the event loop goes to the spool in one write.
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Log } from "../domain/log.ts";
import type { LedgerEntry, TokenUsage, UsageBegin, UsageEnd, UsageRecord } from "../domain/usage.ts";
import { repin, type Segment, type Spool } from "./spool.ts";
import { SpoolEncoder } from "./spool-encoder.ts";
import { cleanProgress, recordOf, type UsageProgress } from "./spool-format.ts";

export interface SettledRecord {
  record: UsageRecord;
  /** Where it stands; where the spool could not take it, where its begin stands. Pinned until it is in the database. */
  segment: Segment;
  spooled: boolean;
}

export interface LedgerJournalOptions {
  spool: Spool;
  log: Log;
  clock: Clock;
  /** Gets each record once its write was tried. */
  onSettled(settled: SettledRecord): void;
  /** Called after what was gathered in a turn was written, or could not be. */
  onTurn(): void;
}

/** At most so many requests are carried over at a time: a few milliseconds of work. */
const carryBatch = 256;
const retryAfterSeconds = 5;

export class LedgerJournal {
  readonly #options: LedgerJournalOptions;
  /** Begun and not settled; oldest first. */
  readonly #open = new Set<JournalEntry>();
  /** Holds the lines of this turn. */
  readonly #lines = new SpoolEncoder();
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

  begin(begin: UsageBegin): LedgerEntry {
    const turn = this.#gather();
    const entry = new JournalEntry(this, begin, turn, this.#options.clock.monotonicMs());
    this.#lines.begin(begin);
    turn.begun.push(entry);
    turn.segment.pins++;
    this.#open.add(entry);
    return entry;
  }

  progress(entry: JournalEntry, usage: TokenUsage, nanoUsd: number | null): void {
    if (!this.#open.has(entry)) return;
    const elapsedMs = this.#options.clock.monotonicMs() - entry.startedMs;
    entry.lastProgress = cleanProgress({ ...usage, requestId: entry.begin.requestId, nanoUsd, elapsedMs });
    const turn = this.#gather();
    if (turn.segment === entry.segment) this.#lines.progress(entry.lastProgress);
    else this.#carry(entry, turn);
  }

  settle(entry: JournalEntry, end: UsageEnd): Promise<void> {
    if (!this.#open.delete(entry)) return entry.kept ?? Promise.resolve();
    const record = recordOf(entry.begin, end);
    entry.settled = { record, segment: entry.segment, spooled: false };
    const turn = this.#gather();
    this.#lines.settle(record);
    turn.settled.push(entry);
    entry.kept = turn.whenKept;
    return entry.kept;
  }

  /** Writes what this turn has gathered so far now; those who wait for it go on. Does nothing where there is nothing. */
  readonly commit = (): void => {
    const turn = this.#turn;
    if (turn === undefined) return;
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
  };

  /** Says again at once what could not be written in time. Throws where it still cannot. */
  repeat(settled: readonly SettledRecord[]): void {
    this.commit();
    const segment = this.#options.spool.ready();
    for (const { record } of settled) this.#lines.settle(record);
    this.#append(this.#lines.take());
    for (const one of settled) {
      repin(one, segment);
      one.spooled = true;
    }
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

  #gather(): Turn {
    if (this.#turn === undefined) {
      this.#turn = new Turn(this.#options.spool.ready());
      // Runs when all sockets that had something to say in this turn were heard, before the loop waits again.
      setImmediate(this.commit);
    }
    return this.#turn;
  }

  #carry(entry: JournalEntry, turn: Turn): void {
    const before = this.#lines.length;
    this.#lines.begin(entry.begin);
    if (entry.lastProgress) this.#lines.progress(entry.lastProgress);
    turn.carriedBytes += this.#lines.length - before;
    turn.carried.push(entry);
  }

  #written(turn: Turn): void {
    for (const entry of turn.carried) repin(entry, turn.segment);
    for (const { settled, segment } of turn.settled) {
      if (!settled) continue;
      settled.segment = segment;
      settled.spooled = true;
      repin(settled, turn.segment);
      this.#options.onSettled(settled);
    }
    turn.keep();
  }

  /** What began is void, as nobody was told that it could be sent. What was settled goes to the database from memory. */
  #refused(turn: Turn, cause: unknown): void {
    for (const entry of turn.begun) {
      entry.segment.pins--;
      entry.settled = undefined;
      this.#open.delete(entry);
    }
    for (const { settled } of turn.settled) if (settled) this.#options.onSettled(settled);
    turn.refuse(unavailable(`The spool cannot be written: ${String(cause)}`, cause));
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
  readonly begun: Promise<void>;
  readonly begin: UsageBegin;
  readonly startedMs: number;
  /** Where its begin and its last checkpoint stand. */
  segment: Segment;
  lastProgress: UsageProgress | undefined = undefined;
  settled: SettledRecord | undefined = undefined;
  kept: Promise<void> | undefined = undefined;
  readonly #journal: LedgerJournal;

  constructor(journal: LedgerJournal, begin: UsageBegin, turn: Turn, startedMs: number) {
    this.#journal = journal;
    this.begin = begin;
    this.segment = turn.segment;
    this.begun = turn.whenBegun;
    this.startedMs = startedMs;
  }

  progress(usage: TokenUsage, nanoUsd: number | null): void {
    this.#journal.progress(this, usage, nanoUsd);
  }

  settle(end: UsageEnd): Promise<void> {
    return this.#journal.settle(this, end);
  }
}

/** What was said in one turn of the event loop. All who wait for it share its two promises. */
class Turn {
  /** Where all of it goes: whoever begins a new segment commits first. */
  readonly segment: Segment;
  carriedBytes = 0;
  readonly begun: JournalEntry[] = [];
  readonly carried: JournalEntry[] = [];
  readonly settled: JournalEntry[] = [];
  #begun: PromiseWithResolvers<void> | undefined;
  #kept: PromiseWithResolvers<void> | undefined;

  constructor(segment: Segment) {
    this.segment = segment;
  }

  get whenBegun(): Promise<void> {
    if (this.#begun === undefined) {
      this.#begun = Promise.withResolvers();
      // A request whose client has left already may wait for it no more.
      this.#begun.promise.catch(() => {});
    }
    return this.#begun.promise;
  }

  get whenKept(): Promise<void> {
    this.#kept ??= Promise.withResolvers();
    return this.#kept.promise;
  }

  keep(): void {
    this.#begun?.resolve();
    this.#kept?.resolve();
  }

  refuse(error: GatewayError): void {
    this.#begun?.reject(error);
    this.#kept?.resolve();
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
