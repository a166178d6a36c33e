// Remembers the last state of limits that the shared store reported, for use while it is unreachable.
import type { Clock } from "../base/clock.ts";
import { SweptMap } from "../base/swept-map.ts";
import type { QuotaUse, RateLimit } from "../domain/limits/limits.ts";

/** Milliseconds after which a remembered state is no longer used. */
const seenMs = 60_000;

interface Seen {
  first: number;
  second: number;
  third: number;
  atMs: number;
}

export class SeenLimits {
  readonly #clock: Clock;
  readonly #seen: SweptMap<Seen>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#seen = new SweptMap((seen) => clock.monotonicMs() - seen.atMs > seenMs);
  }

  /**
   * Stores a state. For a rate limit, `first` is the backlog of its bucket. For a quota, the three numbers are tokens,
   * nano-USD and requests, including reservations.
   */
  see(key: string, first: number, second: number, third: number): void {
    const atMs = this.#clock.monotonicMs();
    const seen = this.#seen.get(key);
    if (seen) {
      seen.first = first;
      seen.second = second;
      seen.third = third;
      seen.atMs = atMs;
      return;
    }
    this.#seen.used(atMs);
    this.#seen.set(key, { first, second, third, atMs });
  }

  /**
   * Returns how much of a rate limit is used, according to the last state minus the refill since then; 0 if unknown.
   */
  taken(key: string, { limit, windowSeconds }: RateLimit): number {
    const seen = this.#seen.get(key);
    if (!seen) return 0;
    const backlog = seen.first - (this.#clock.monotonicMs() - seen.atMs) * limit;
    return Math.max(0, Math.ceil(backlog / (windowSeconds * 1000)));
  }

  used(key: string): QuotaUse | undefined {
    const seen = this.#seen.get(key);
    if (!seen || this.#clock.monotonicMs() - seen.atMs > seenMs) return undefined;
    return { tokens: seen.first, nanoUsd: seen.second, requests: seen.third };
  }
}
