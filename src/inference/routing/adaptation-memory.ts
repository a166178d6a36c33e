// Remembers for a time which adaptations a deployment needs, so that later requests are written with them.

/** Milliseconds after which the deployment is asked without the adaptation again: its server may have been upgraded. */
const rememberedMs = 3_600_000;
const maxRemembered = 64;

export class AdaptationMemory {
  /** Monotonic time until which each key holds, the oldest first. */
  readonly #untilMs = new Map<string, number>();

  /** Remembers the keys; beyond the maximum the oldest ones are forgotten. */
  add(keys: Iterable<string>, nowMs: number): void {
    for (const key of keys) {
      this.#untilMs.delete(key);
      this.#untilMs.set(key, nowMs + rememberedMs);
      const [oldest] = this.#untilMs.keys();
      if (this.#untilMs.size > maxRemembered && oldest !== undefined) this.#untilMs.delete(oldest);
    }
  }

  /** Returns the keys that hold now; undefined if there are none. */
  keys(nowMs: number): ReadonlySet<string> | undefined {
    for (const [key, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break;
      this.#untilMs.delete(key);
    }
    return this.#untilMs.size === 0 ? undefined : new Set(this.#untilMs.keys());
  }
}
