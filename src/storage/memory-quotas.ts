// What each quota's owner used this month and what running requests have set aside, in the memory of this process.
import { type CalendarMonth, calendarMonthOf } from "../domain/calendar-month.ts";
import type { Clock } from "../domain/clock.ts";
import { unreadUsageRefusal } from "../domain/limit-refusal.ts";
import type { Quota } from "../domain/limits.ts";
import type { Ledger } from "../domain/usage.ts";
import type { QuotaFigures } from "./limit-decision.ts";
import { SweptMap } from "./swept-map.ts";

export interface QuotaCounter extends QuotaFigures {
  leases: number;
  reading: Promise<void> | undefined;
  /** Monotonic. */
  lastUsedMs: number;
  /** The next one to ask for it gets another. */
  isForgotten: boolean;
}

/** Unused for so long, a counter is read anew when it is needed. Longer than a database may be down for warm keys. */
const forgetAfterMs = 3_600_000;
/** Counters of a month further away than this are of no use, whichever way the wall clock jumps. */
const nearbySeconds = 40 * 86_400;

export class MemoryQuotas {
  readonly #clock: Clock;
  readonly #ledger: Pick<Ledger, "readTotals">;
  #month: CalendarMonth;
  #counters: SweptMap<QuotaCounter>;
  /** By start of the month: a wall clock that jumps back finds what it left. */
  readonly #months = new Map<number, SweptMap<QuotaCounter>>();

  constructor(clock: Clock, ledger: Pick<Ledger, "readTotals">) {
    this.#clock = clock;
    this.#ledger = ledger;
    this.#month = calendarMonthOf(clock.nowSeconds());
    this.#counters = this.#countersOf(this.#month);
  }

  /** The month that it is. */
  month(): CalendarMonth {
    this.#turnMonth();
    return this.#month;
  }

  /** The counter of this month. */
  counter(quota: Quota, nowMs: number): QuotaCounter {
    this.#turnMonth();
    let counter = this.#counters.get(quota.id);
    if (!counter) {
      counter = {
        month: this.#month,
        usedTokens: 0,
        usedNanoUsd: 0,
        heldTokens: 0,
        heldNanoUsd: 0,
        leases: 0,
        isRead: false,
        reading: undefined,
        lastUsedMs: nowMs,
        isForgotten: false,
      };
      this.#counters.set(quota.id, counter);
    }
    counter.lastUsedMs = nowMs;
    return counter;
  }

  /** Fills a counter from the ledger; all who ask meanwhile share one reading. Rejects with `service_unavailable`. */
  read(quota: Quota, counter: QuotaCounter): Promise<void> {
    counter.reading ??= this.#read(quota, counter).finally(() => {
      counter.reading = undefined;
    });
    return counter.reading;
  }

  get tracked(): number {
    let sum = 0;
    for (const counters of this.#months.values()) sum += counters.size;
    return sum;
  }

  /** A request was decided; counters that nobody uses may go. */
  sweep(nowMs: number): void {
    this.#counters.used(nowMs);
  }

  async #read({ owner, ownerId, environment }: Quota, counter: QuotaCounter): Promise<void> {
    try {
      const { start: since, end: until } = counter.month;
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

  #countersOf({ start }: CalendarMonth): SweptMap<QuotaCounter> {
    let counters = this.#months.get(start);
    if (!counters) {
      counters = new SweptMap((counter) => this.#forget(counter));
      this.#months.set(start, counters);
    }
    return counters;
  }

  #forget(counter: QuotaCounter): boolean {
    const { leases, reading, lastUsedMs } = counter;
    if (leases > 0 || reading || this.#clock.monotonicMs() - lastUsedMs <= forgetAfterMs) return false;
    counter.isForgotten = true;
    return true;
  }
}
