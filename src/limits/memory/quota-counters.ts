// The counters of one month, by quota id. Each counter is a row of numbers.
import type { CalendarMonth } from "../../base/calendar-month.ts";
import type { Period } from "../../domain/limits/quota-rules.ts";
import type { QuotaFigures } from "../limit-decision.ts";
import { KeptRow, KeptRows, type RowLocation } from "./kept-rows.ts";

/** The figures of one quota in this process. */
export interface QuotaCounter extends QuotaFigures {
  /** The counters that contain this counter. Undefined after it was dropped; the next caller gets another. */
  readonly among: object | undefined;
  /** Time of the last use in monotonic milliseconds. */
  lastUsedMs: number;
  /** The read in progress. The counter must not be dropped before its end. */
  reading: Promise<void> | undefined;
  /** Reserves the amounts that a request may use. */
  begin(tokens: number, nanoUsd: number): void;
  /** Reserves more for a running request. */
  hold(tokens: number, nanoUsd: number): void;
  /** Records the usage of a request and releases its reservation. */
  book(usedTokens: number, usedNanoUsd: number, heldTokens: number, heldNanoUsd: number): void;
}

/**
 * Milliseconds without use after which a counter is dropped and loaded again when needed. Longer than cached keys are
 * valid without a database.
 */
export const forgetAfterMs = 3_600_000;

/** Positions of the numbers in a row, and their count. One more entry marks the current use of the row. */
const [usedRequests, usedTokens, usedNanoUsd, leases, heldTokens, heldNanoUsd, lastUsedMs, isRead, width] = [
  0, 1, 2, 3, 4, 5, 6, 7, 9,
] as const;

export class QuotaCounters extends KeptRows<MonthCounter> {
  readonly month: CalendarMonth;
  /** Reads in progress, by row. */
  readonly readings = new Map<number, Promise<void>>();

  constructor(month: CalendarMonth) {
    super(width);
    this.month = month;
  }

  protected override at(location: RowLocation): MonthCounter {
    return new MonthCounter(this, location);
  }

  protected override isOver(counter: MonthCounter, nowMs: number): boolean {
    return counter.leases === 0 && !counter.reading && nowMs - counter.lastUsedMs > forgetAfterMs;
  }
}

/** A counter in a row. All objects for one row are the same counter. */
export class MonthCounter extends KeptRow implements QuotaCounter {
  readonly #counters: QuotaCounters;

  constructor(counters: QuotaCounters, location: RowLocation) {
    super(location);
    this.#counters = counters;
  }

  get among(): QuotaCounters | undefined {
    return this.isKept ? this.#counters : undefined;
  }

  get period(): Period {
    return this.#counters.month;
  }

  get usedRequests(): number {
    return this.get(usedRequests);
  }

  set usedRequests(count: number) {
    this.set(usedRequests, count);
  }

  get usedTokens(): number {
    return this.get(usedTokens);
  }

  set usedTokens(tokens: number) {
    this.set(usedTokens, tokens);
  }

  get usedNanoUsd(): number {
    return this.get(usedNanoUsd);
  }

  set usedNanoUsd(nanoUsd: number) {
    this.set(usedNanoUsd, nanoUsd);
  }

  get leases(): number {
    return this.get(leases);
  }

  get heldTokens(): number {
    return this.get(heldTokens);
  }

  get heldNanoUsd(): number {
    return this.get(heldNanoUsd);
  }

  get lastUsedMs(): number {
    return this.get(lastUsedMs);
  }

  set lastUsedMs(ms: number) {
    this.set(lastUsedMs, ms);
  }

  get isRead(): boolean {
    return this.get(isRead) === 1;
  }

  set isRead(value: boolean) {
    this.set(isRead, value ? 1 : 0);
  }

  get reading(): Promise<void> | undefined {
    return this.#counters.readings.get(this.nth);
  }

  set reading(reading: Promise<void> | undefined) {
    if (reading) this.#counters.readings.set(this.nth, reading);
    else this.#counters.readings.delete(this.nth);
  }

  begin(tokens: number, nanoUsd: number): void {
    this.add(leases, 1);
    this.hold(tokens, nanoUsd);
  }

  hold(tokens: number, nanoUsd: number): void {
    this.add(heldTokens, tokens);
    this.add(heldNanoUsd, nanoUsd);
  }

  book(tokens: number, nanoUsd: number, wereHeldTokens: number, wereHeldNanoUsd: number): void {
    this.add(leases, -1);
    this.hold(-wereHeldTokens, -wereHeldNanoUsd);
    // A counter that was not read yet will get its figures from the ledger, which includes this request.
    this.add(usedRequests, 1);
    this.add(usedTokens, tokens);
    this.add(usedNanoUsd, nanoUsd);
  }
}
