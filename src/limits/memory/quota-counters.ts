// The usage counters of all quotas in one month, each stored as a row of numbers.
import type { CalendarMonth } from "../../base/calendar-month.ts";
import type { Period } from "../../domain/limits/quota-rules.ts";
import type { QuotaFigures } from "../limit-decision.ts";
import { KeptRow, KeptRows, type RowLocation } from "./kept-rows.ts";

/** Usage and reservations of one quota in this process. */
export interface QuotaCounter extends QuotaFigures {
  /** The collection that the counter belongs to; undefined after it was dropped. */
  readonly among: object | undefined;
  /** Time of the last use in monotonic milliseconds. */
  lastUsedMs: number;
  /** The running read from the ledger. The counter must not be dropped before it ends. */
  reading: Promise<void> | undefined;
  /** Counts a request and reserves the amounts that it may use. */
  begin(tokens: number, nanoUsd: number): void;
  /** Reserves more for a running request. */
  hold(tokens: number, nanoUsd: number): void;
  /** Records the usage of a request and releases its reservation. */
  book(usedTokens: number, usedNanoUsd: number, heldTokens: number, heldNanoUsd: number): void;
}

/**
 * Milliseconds without use after which a counter is dropped. Longer than cached keys are valid during a database
 * outage.
 */
export const forgetAfterMs = 3_600_000;

/** The positions of the numbers in a row, and the width of a row including the entry that `KeptRow` needs. */
const [usedRequests, usedTokens, usedNanoUsd, leases, heldTokens, heldNanoUsd, lastUsedMs, isRead, width] = [
  0, 1, 2, 3, 4, 5, 6, 7, 9,
] as const;

export class QuotaCounters extends KeptRows<MonthCounter> {
  readonly month: CalendarMonth;
  /** Running reads from the ledger, by row. */
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

/** A counter stored in a row. Several objects may refer to the same row. */
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
    // A counter that was not read yet gets its figures from the ledger, which will include this request.
    this.add(usedRequests, 1);
    this.add(usedTokens, tokens);
    this.add(usedNanoUsd, nanoUsd);
  }
}
