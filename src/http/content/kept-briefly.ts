// Caches each result for a multiple of its computation time. This bounds the share of time spent on computing.
import type { Clock } from "../../base/clock.ts";

/** A result is cached for this multiple of its computation time, within `minMs` and `maxMs`. */
const timesAsLong = 10;
const minMs = 1_000;
const maxMs = 10_000;

interface Kept<Value> {
  value: Promise<Value>;
  /** Monotonic time at which the value expires. Infinite while the value is being computed. */
  untilMs: number;
}

export class KeptBriefly<Value> {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #most: number;
  readonly #kept = new Map<string, Kept<Value>>();

  /**
   * Caches at most `most` results, not counting those that are being computed. If there are more, the oldest is
   * evicted.
   */
  constructor(clock: Pick<Clock, "monotonicMs">, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /**
   * Returns the cached result, or computes it with `make`. Concurrent calls share one computation. Failures are
   * not cached.
   */
  get(id: string, make: () => Promise<Value>): Promise<Value> {
    const known = this.#kept.get(id);
    const startedMs = this.#clock.monotonicMs();
    if (known && startedMs < known.untilMs) return known.value;
    const made: Kept<Value> = { value: make(), untilMs: Infinity };
    this.#kept.delete(id);
    this.#kept.set(id, made);
    for (const [oldest, { untilMs }] of this.#kept) {
      if (this.#kept.size <= this.#most) break;
      // A result that is still being computed stays, because the next call would compute it again.
      if (untilMs !== Infinity) this.#kept.delete(oldest);
    }
    made.value.then(
      () => {
        const endedMs = this.#clock.monotonicMs();
        made.untilMs = endedMs + Math.min(maxMs, Math.max(minMs, timesAsLong * (endedMs - startedMs)));
      },
      () => {
        if (this.#kept.get(id) === made) this.#kept.delete(id);
      },
    );
    return made.value;
  }
}
