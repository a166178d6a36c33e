// Usage and reservations of each monthly quota, in this process's memory.
import { type CalendarMonth, calendarMonthOf } from "../../base/calendar-month.ts";
import type { Clock } from "../../base/clock.ts";
import { unreadUsageRefusal } from "../../domain/limits/limit-refusal.ts";
import type { Quota } from "../../domain/limits/limits.ts";
import type { Ledger } from "../../domain/usage/usage.ts";
import { readInTime } from "../read-in-time.ts";
import { type MonthCounter, QuotaCounters } from "./quota-counters.ts";

/** Counters of months that are further away than this are dropped; no jump of the wall clock reaches them. */
const nearbySeconds = 40 * 86_400;

export class MemoryQuotas {
  readonly #clock: Clock;
  readonly #ledger: Pick<Ledger, "readTotals">;
  #month: CalendarMonth;
  #counters: QuotaCounters;
  /** Counters by start of the month. After the wall clock was set back, the earlier counters still exist. */
  readonly #months = new Map<number, QuotaCounters>();

  constructor(clock: Clock, ledger: Pick<Ledger, "readTotals">) {
    this.#clock = clock;
    this.#ledger = ledger;
    this.#month = calendarMonthOf(clock.nowSeconds());
    this.#counters = this.#countersOf(this.#month);
  }

  /** Returns the counters of the current month. */
  now(): QuotaCounters {
    this.#turnMonth();
    return this.#counters;
  }

  /**
   * Returns the counter of a quota for the current month. `known` is the counter that the caller got last; it may be
   * outdated.
   */
  use(id: string, counters: QuotaCounters, nowMs: number, known?: MonthCounter): MonthCounter {
    const counter = known?.among === counters ? known : (counters.find(id) ?? counters.add(id));
    counter.lastUsedMs = nowMs;
    return counter;
  }

  /**
   * Discards the quota's usage of this month, so that its next use reads the usage from the ledger again. Reservations
   * of running requests stay.
   */
  forget(id: string): void {
    const counter = this.now().find(id);
    if (counter) counter.isRead = false;
  }

  /**
   * Reads a counter's usage from the ledger. Concurrent callers share one read. Rejects with `service_unavailable`,
   * also after a timeout.
   */
  read(quota: Quota, counter: MonthCounter): Promise<void> {
    counter.reading ??= this.#read(quota, counter).finally(() => {
      counter.reading = undefined;
    });
    return readInTime(counter.reading);
  }

  get tracked(): number {
    let sum = 0;
    for (const counters of this.#months.values()) sum += counters.size;
    return sum;
  }

  async #read({ owner, ownerId, environment }: Quota, counter: MonthCounter): Promise<void> {
    try {
      const { start: since, end: until } = counter.period;
      await this.#ledger.readTotals({ type: owner, id: ownerId, environment, since, until }, (totals) => {
        counter.usedTokens = totals.tokens;
        counter.usedNanoUsd = totals.nanoUsd;
        counter.isRead = true;
      });
    } catch (error) {
      throw unreadUsageRefusal(error);
    }
    if (!counter.isRead) throw unreadUsageRefusal(new Error("the ledger gave no totals"));
  }

  #turnMonth(): void {
    const now = this.#clock.nowSeconds();
    if (now >= this.#month.start && now < this.#month.end) return;
    this.#month = calendarMonthOf(now);
    for (const start of this.#months.keys()) {
      if (Math.abs(start - this.#month.start) > nearbySeconds) this.#months.delete(start);
    }
    this.#counters = this.#countersOf(this.#month);
  }

  #countersOf(month: CalendarMonth): QuotaCounters {
    let counters = this.#months.get(month.start);
    if (!counters) {
      counters = new QuotaCounters(month);
      this.#months.set(month.start, counters);
    }
    return counters;
  }
}
