// Keeps what took long to make for a while, so that many who ask for it again and again cost a bounded part of the time.
import type { Clock } from "../../base/clock.ts";

/** Kept for so many times as long as it took: at most one part in so many of the time goes into making it. */
const timesAsLong = 10;
const minMs = 1_000;
const maxMs = 10_000;

interface Kept<Value> {
  value: Promise<Value>;
  /** Monotonic; infinite while it is being made. */
  untilMs: number;
}

export class KeptBriefly<Value> {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #most: number;
  readonly #kept = new Map<string, Kept<Value>>();

  /** At most `most` values beside those that are being made; the oldest gives way. */
  constructor(clock: Pick<Clock, "monotonicMs">, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Who asks while it is being made waits for the same one. What fails is not kept. */
  get(id: string, make: () => Promise<Value>): Promise<Value> {
    const known = this.#kept.get(id);
    const startedMs = this.#clock.monotonicMs();
    if (known && startedMs < known.untilMs) return known.value;
    const made: Kept<Value> = { value: make(), untilMs: Infinity };
    this.#kept.delete(id);
    this.#kept.set(id, made);
    for (const [oldest, { untilMs }] of this.#kept) {
      if (this.#kept.size <= this.#most) break;
      // What is being made would be made once more by the next who asks.
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
