// Remembers for a limited time which adaptations a deployment needs, so that later requests are adapted before they are
// sent.

/**
 * Milliseconds for which an adaptation is remembered. After that, requests are sent without it again, because the
 * server may have been upgraded.
 */
const rememberedMs = 3_600_000;
const maxRemembered = 64;

export class AdaptationMemory {
  /** For each key, the time in monotonic milliseconds until which it is remembered. The oldest key comes first. */
  readonly #untilMs = new Map<string, number>();
  /** Keys that are being tried, with the number of requests that try them. */
  readonly #tried = new Map<string, number>();

  /** Remembers the keys. If there are too many, forgets the oldest ones. */
  add(keys: Iterable<string>, nowMs: number): void {
    for (const key of keys) {
      this.#untilMs.delete(key);
      this.#untilMs.set(key, nowMs + rememberedMs);
      const [oldest] = this.#untilMs.keys();
      if (this.#untilMs.size > maxRemembered && oldest !== undefined) this.#untilMs.delete(oldest);
    }
  }

  /**
   * Applies the keys to other requests until `endTrial` is called. Until the first answer is complete, all other
   * requests would be refused without these adaptations, and most of them could not be repeated.
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

  /** Returns the keys that apply now, or undefined if there are none. */
  keys(nowMs: number): ReadonlySet<string> | undefined {
    for (const [key, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break;
      this.#untilMs.delete(key);
    }
    const keys = new Set([...this.#untilMs.keys(), ...this.#tried.keys()]);
    return keys.size === 0 ? undefined : keys;
  }
}
