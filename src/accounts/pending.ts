// What was begun and waits for its second half: each entry can be taken once, lives for minutes, and only so many are kept.
import type { Clock } from "../domain/clock.ts";

export interface PendingOptions {
  clock: Pick<Clock, "monotonicMs">;
  lifeMs: number;
  /** With more, the oldest ones are forgotten: whoever floods it must not lock others out for long. */
  most: number;
}

interface Entry<Value> {
  value: Value;
  endsMs: number;
}

export class Pending<Value> {
  readonly #options: PendingOptions;
  /** In the order in which they end. */
  readonly #entries = new Map<string, Entry<Value>>();

  constructor(options: PendingOptions) {
    this.#options = options;
  }

  /** In the place of an earlier one with the same key. */
  put(key: string, value: Value): void {
    const { clock, lifeMs, most } = this.#options;
    const now = clock.monotonicMs();
    this.#entries.delete(key);
    for (const [oldest, { endsMs }] of this.#entries) {
      if (endsMs > now && this.#entries.size < most) break;
      this.#entries.delete(oldest);
    }
    this.#entries.set(key, { value, endsMs: now + lifeMs });
  }

  /** Undefined for what was never there, has ended or was taken. */
  take(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    return entry && entry.endsMs > this.#options.clock.monotonicMs() ? entry.value : undefined;
  }
}
