// Reserves slots for requests of high priority if some came lately: as many as were wanted at once.
import type { Clock } from "../../base/clock.ts";
import { priorities, priorityShares } from "../../domain/models/policies/priority.ts";

/** Milliseconds for which demand counts: at least this long, at most twice as long. */
const spanMs = 30_000;

const allShares = priorities.reduce((sum, priority) => sum + priorityShares[priority], 0);
/** The part of all slots that lower priorities keep, whatever the demand. */
const lowerPart = (allShares - priorityShares.high) / allShares;

/**
 * A request of high priority that must not wait has to find a free slot, because the next one becomes free only after
 * a whole answer. So the maximum of running and waiting requests in this and the previous period is kept free of
 * lower priorities, plus one for chance. The number stays within the share of high priorities, so that others keep
 * their own share. If no request of high priority came for a while, nothing is reserved.
 */
export class Headroom {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #peak = 0;
  #peakBefore = 0;
  #sinceMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Notes that this many slots are wanted now, including the ones held. */
  wanted(slots: number): void {
    this.#turn();
    this.#peak = Math.max(this.#peak, slots);
  }

  /**
   * Returns how many of `limit` slots lower priorities must leave. Reads no clock if there was nothing to reserve for.
   */
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
