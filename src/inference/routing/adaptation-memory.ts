// Remembers for a time which adaptations a deployment needs, so that later requests are written with them.

/** Milliseconds after which the deployment is asked without the adaptation again: its server may have been upgraded. */
const rememberedMs = 3_600_000;
const maxRemembered = 64;

export class AdaptationMemory {
  /** Monotonic time until which each key holds, the oldest first. */
  readonly #untilMs = new Map<string, number>();
  /** Keys that are tried now, with the number of requests that try them. */
  readonly #tried = new Map<string, number>();

  /** Remembers the keys; beyond the maximum the oldest ones are forgotten. */
  add(keys: Iterable<string>, nowMs: number): void {
    for (const key of keys) {
      this.#untilMs.delete(key);
      this.#untilMs.set(key, nowMs + rememberedMs);
      const [oldest] = this.#untilMs.keys();
      if (this.#untilMs.size > maxRemembered && oldest !== undefined) this.#untilMs.delete(oldest);
    }
  }

  /**
   * Holds the keys until `endTrial`: until the first answer is complete, other requests would all be refused, and most
   * of them could not be repeated.
   */
  beginTrial(keys: readonly string[]): void {
    for (const key of keys) this.#tried.set(key, (this.#tried.get(key) ?? 0) + 1);
  }

  endTrial(keys: readonly string[]): void {
    for (const key of keys) {
      const others = (this.#tried.get(key) ?? 1) - 1;
      if (others > 0) this.#tried.set(key, others);
      else this.#tried.delete(key);
    }
  }

  /** Returns the keys that hold now; undefined if there are none. */
  keys(nowMs: number): ReadonlySet<string> | undefined {
    for (const [key, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break;
      this.#untilMs.delete(key);
    }
    const keys = new Set([...this.#untilMs.keys(), ...this.#tried.keys()]);
    return keys.size === 0 ? undefined : keys;
  }
}
