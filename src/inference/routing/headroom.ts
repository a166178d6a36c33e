// Places that are held ready for requests of high priority, where some came lately: as many as they wanted at once.
import type { Clock } from "../../base/clock.ts";
import { priorities, priorityShares } from "../../domain/models/policies/priority.ts";

/** What was wanted counts for this long at least, and for twice as long at most. */
const spanMs = 30_000;

const allShares = priorities.reduce((sum, priority) => sum + priorityShares[priority], 0);
/** The part of all places that lower priorities keep, whatever was wanted. */
const lowerPart = (allShares - priorityShares.high) / allShares;

/**
 * A place that becomes free next may take a whole answer to do so: who is not to wait has to find one. So the most that was
 * in flight and waited at once, in this span and the one before, is kept free of lower priorities, and one place more, as what
 * comes by chance comes in greater numbers sometimes. It is within the share of high priorities, so that what others
 * have of their own is never taken; where nothing of high priority came for a while, it is nothing.
 */
export class Headroom {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #peak = 0;
  #peakBefore = 0;
  #sinceMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** So many places are wanted at this moment, those that are held included. */
  wanted(slots: number): void {
    this.#turn();
    this.#peak = Math.max(this.#peak, slots);
  }

  /** How many of `limit` places lower priorities leave. No clock is read where there was nothing to hold any ready for. */
  placesOf(limit: number): number {
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
