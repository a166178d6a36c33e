// Reserves slots for requests of high priority: one more than were recently needed at the same time.
import type { Clock } from "../../base/clock.ts";
import { priorities, priorityShares } from "../../domain/models/policies/priority.ts";

/** Milliseconds of a period. The highest demand of the current and the previous period counts. */
const spanMs = 30_000;

const allShares = priorities.reduce((sum, priority) => sum + priorityShares[priority], 0);
/** Share of all slots that is never reserved, so that lower priorities keep it. */
const lowerPart = (allShares - priorityShares.high) / allShares;

/**
 * Lets a request of high priority find a free slot, because the next slot becomes free only after a whole answer. The
 * reservation is the highest number of running and waiting requests of high priority in this and the previous period,
 * plus one. It never exceeds the share of high priority. Without recent demand, nothing is reserved.
 */
export class Headroom {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #peak = 0;
  #peakBefore = 0;
  #sinceMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Records that requests of high priority hold or need this many slots at the moment. */
  wanted(slots: number): void {
    this.#turn();
    this.#peak = Math.max(this.#peak, slots);
  }

  /** Returns how many of `limit` slots are reserved. If there was no recent demand, does not read the clock. */
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
