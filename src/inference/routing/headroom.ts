// Reserves slots for requests of high priority: as many as were recently needed at the same time.
import type { Clock } from "../../base/clock.ts";
import { priorities, priorityShares } from "../../domain/models/policies/priority.ts";

/** Milliseconds of a period. Demand counts for the current and the previous period. */
const spanMs = 30_000;

const allShares = priorities.reduce((sum, priority) => sum + priorityShares[priority], 0);
/** Fraction of all slots that lower priorities always keep. */
const lowerPart = (allShares - priorityShares.high) / allShares;

/**
 * A request of high priority should find a free slot, because the next one becomes free only after a whole answer. So
 * the highest number of running and waiting ones in this and the previous period stays reserved, plus one. The
 * reservation never exceeds the share of high priority. Without recent demand, nothing is reserved.
 */
export class Headroom {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #peak = 0;
  #peakBefore = 0;
  #sinceMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Records that requests of high priority hold or need this many slots now. */
  wanted(slots: number): void {
    this.#turn();
    this.#peak = Math.max(this.#peak, slots);
  }

  /** Returns how many of `limit` slots are reserved. Does not read the clock without recent demand. */
  slotsOf(limit: number): number {
    if (this.#peak === 0 && this.#peakBefore === 0) return 0;
    this.#turn();
    const peak = Math.max(this.#peak, this.#peakBefore);
    return peak === 0 ? 0 : Math.max(0, Math.min(peak + 1, limit - Math.ceil(limit * lowerPart)));
  }

  #turn(): void {
    const nowMs = this.#clock.monotonicMs();
    const spans = Math.floor((nowMs - this.#sinceMs) / spanMs);
    if (spans < 1) return;
    this.#peakBefore = spans === 1 ? this.#peak : 0;
    this.#peak = 0;
    this.#sinceMs += spans * spanMs;
  }
}
