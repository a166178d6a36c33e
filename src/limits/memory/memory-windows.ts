// Quotas with a calendar or rolling window, in this process's memory.

import type { Clock } from "../../base/clock.ts";
import { SweptMap } from "../../base/swept-map.ts";
import { unreadUsageRefusal } from "../../domain/limits/limit-refusal.ts";
import type { Quota, Reservation } from "../../domain/limits/limits.ts";
import { isCounted } from "../../domain/limits/quota-filter.ts";
import { calendarPeriod, type Period, type QuotaWindow } from "../../domain/limits/quota-rules.ts";
import type { Ledger } from "../../domain/usage/usage.ts";
import { readInTime } from "../read-in-time.ts";
import { rollingSpan } from "../rolling-span.ts";
import { forgetAfterMs, type QuotaCounter } from "./quota-counters.ts";
import type { WindowStarts } from "./window-starts.ts";

/** A quota with a window, and the counter of its current window. */
export interface CountedWindow {
  readonly quota: Quota;
  readonly counter: WindowCounter;
}

export class WindowCounter implements QuotaCounter {
  /** The window; for a rolling quota it begins with the first use. */
  period: Period | undefined;
  among: object | undefined;
  usedRequests = 0;
  usedTokens = 0;
  usedNanoUsd = 0;
  heldTokens = 0;
  heldNanoUsd = 0;
  isRead = false;
  leases = 0;
  lastUsedMs: number;
  reading: Promise<void> | undefined;
  /** End of an open rolling window in monotonic milliseconds. */
  endMs = Number.POSITIVE_INFINITY;

  constructor(period: Period | undefined, among: object, nowMs: number) {
    this.period = period;
    this.among = among;
    this.lastUsedMs = nowMs;
  }

  begin(tokens: number, nanoUsd: number): void {
    this.leases++;
    this.hold(tokens, nanoUsd);
  }

  hold(tokens: number, nanoUsd: number): void {
    this.heldTokens += tokens;
    this.heldNanoUsd += nanoUsd;
  }

  book(usedTokens: number, usedNanoUsd: number, heldTokens: number, heldNanoUsd: number): void {
    this.leases--;
    this.hold(-heldTokens, -heldNanoUsd);
    this.usedRequests++;
    this.usedTokens += usedTokens;
    this.usedNanoUsd += usedNanoUsd;
  }
}

/**
 * Calendar windows follow the wall clock; if it is set back, the earlier window still has its usage. Rolling windows
 * end by the monotonic clock, so that setting the clock does not change their length.
 */
export class MemoryWindows {
  readonly #clock: Clock;
  readonly #ledger: Pick<Ledger, "readTotals">;
  readonly #starts: WindowStarts | undefined;
  /** Counters by quota id, for calendar windows also by the window's start. */
  readonly #counters = new SweptMap<WindowCounter>((counter) => this.#forget(counter));

  /** `starts` keeps the start times of rolling windows over a restart. */
  constructor(clock: Clock, ledger: Pick<Ledger, "readTotals">, starts: WindowStarts | undefined) {
    this.#clock = clock;
    this.#ledger = ledger;
    this.#starts = starts;
  }

  get size(): number {
    return this.#counters.size;
  }

  /** Returns the quotas among these that count the request; undefined if there are none. */
  of(quotas: readonly Quota[], reservation: Reservation, nowMs: number): CountedWindow[] | undefined {
    this.#counters.used(nowMs);
    let counted: CountedWindow[] | undefined;
    for (const quota of quotas) {
      if (!isCounted(quota, reservation)) continue;
      counted ??= [];
      counted.push({ quota, counter: this.use(quota, nowMs) });
    }
    return counted;
  }

  use(quota: Quota, nowMs: number): WindowCounter {
    const { window, counted } = quota;
    const known = counted instanceof WindowCounter && counted.among === this.#counters ? counted : undefined;
    const counter = known && this.#isCurrent(known, nowMs) ? known : this.#find(quota, windowIn(window), nowMs);
    if (counter !== counted) quota.counted = counter;
    counter.lastUsedMs = nowMs;
    return counter;
  }

  /** Begins the window of a rolling quota if none is open. */
  begin({ quota: { id, window }, counter }: CountedWindow, nowMs: number): void {
    if (counter.period !== undefined) return;
    const { seconds } = windowIn(window);
    const start = this.#clock.nowSeconds();
    counter.period = { start, end: start + seconds };
    counter.endMs = nowMs + seconds * 1000;
    this.#starts?.add(id, start, seconds);
  }

  /**
   * Discards the quota's usage, so that its next use reads the usage from the ledger again. Reservations of running
   * requests stay.
   */
  forget(quota: Quota): void {
    const counter = this.#counters.get(this.#keyOf(quota, this.#periodOf(quota.window)));
    if (counter) counter.isRead = false;
  }

  /**
   * Reads a counter's usage from the ledger. Concurrent callers share one read. Rejects with `service_unavailable`,
   * also after a timeout.
   */
  read(quota: Quota, counter: WindowCounter): Promise<void> {
    counter.reading ??= this.#read(quota, counter).finally(() => {
      counter.reading = undefined;
    });
    return readInTime(counter.reading);
  }

  async #read({ id, owner, ownerId, environment, window, filter }: Quota, counter: WindowCounter): Promise<void> {
    const { kind, seconds } = windowIn(window);
    const isRolling = kind === "rolling";
    const now = this.#clock.nowSeconds();
    const lastStart = isRolling ? this.#starts?.lastOf(id, now) : undefined;
    const span = isRolling || !counter.period ? rollingSpan(now, seconds, lastStart) : spanOf(counter.period);
    const isOpen = lastStart !== undefined && lastStart === span.since;
    const asked = { type: owner, id: ownerId, environment, ...span, ...filter };
    try {
      await this.#ledger.readTotals(asked, (totals) => {
        counter.usedRequests = totals.requests;
        counter.usedTokens = totals.tokens;
        counter.usedNanoUsd = totals.nanoUsd;
        counter.isRead = true;
        const start = isOpen ? lastStart : totals.firstAt;
        if (!isRolling || start === undefined) return;
        this.#startedAt(counter, start, seconds);
        if (!isOpen) this.#starts?.add(id, start, seconds);
      });
    } catch (error) {
      throw unreadUsageRefusal(error);
    }
    if (!counter.isRead) throw unreadUsageRefusal(new Error("the ledger gave no totals"));
  }

  /**
   * Sets the start of a rolling window. The ledger may know earlier usage than this process, so the earlier start
   * counts.
   */
  #startedAt(counter: WindowCounter, firstAt: number, seconds: number): void {
    const start = Math.min(firstAt, counter.period?.start ?? firstAt);
    counter.period = { start, end: start + seconds };
    const leftMs = (start + seconds - this.#clock.nowSeconds()) * 1000;
    counter.endMs = this.#clock.monotonicMs() + Math.max(0, leftMs);
  }

  #isCurrent({ period, endMs }: WindowCounter, nowMs: number): boolean {
    if (endMs !== Number.POSITIVE_INFINITY) return nowMs < endMs;
    if (period === undefined) return true;
    const now = this.#clock.nowSeconds();
    return now >= period.start && now < period.end;
  }

  #find(quota: Quota, window: QuotaWindow, nowMs: number): WindowCounter {
    const period = this.#periodOf(window);
    const key = this.#keyOf(quota, period);
    const known = this.#counters.get(key);
    if (known && this.#isCurrent(known, nowMs)) return known;
    const counter = new WindowCounter(period, this.#counters, nowMs);
    // A new window begins with zero usage. But if the previous counter was never read, the ledger must be read for the
    // new one as well.
    if (known) counter.isRead = known.isRead;
    this.#counters.set(key, counter);
    return counter;
  }

  #periodOf(given: QuotaWindow | undefined): Period | undefined {
    const window = windowIn(given);
    return window.kind === "calendar" ? calendarPeriod(window, this.#clock.nowSeconds()) : undefined;
  }

  #keyOf({ id }: Quota, period: Period | undefined): string {
    return period ? `${id} ${period.start}` : id;
  }

  /** Drops an unused counter. An open rolling window stays, because only its counter knows the start. */
  #forget(counter: WindowCounter): boolean {
    const { leases, reading, lastUsedMs, endMs } = counter;
    const nowMs = this.#clock.monotonicMs();
    if (leases > 0 || reading || nowMs - lastUsedMs <= forgetAfterMs) return false;
    if (endMs !== Number.POSITIVE_INFINITY && nowMs < endMs) return false;
    counter.among = undefined;
    return true;
  }
}

function windowIn(window: QuotaWindow | undefined): QuotaWindow {
  if (window === undefined) throw new TypeError("A quota among windows has none.");
  return window;
}

function spanOf({ start, end }: Period): { since: number; until: number } {
  return { since: start, until: end };
}
