// Limits how many requests of a model are sent again after a failure, so that an outage is not multiplied.
import type { Clock } from "../../base/clock.ts";

/**
 * Allowed retries as a share of the requests of about the last ten seconds, and the number that is always allowed for
 * models with few requests.
 */
const share = 0.2;
const always = 10;
const halfMs = 5_000;

/** Counts over the last 5 to 10 s, in two halves. */
export class RetryBudget {
  readonly #clock: Clock;
  readonly #gateways: () => number;
  #requests = 0;
  #retries = 0;
  #requestsBefore = 0;
  #retriesBefore = 0;
  #halfEndsMs = 0;

  /**
   * `gateways` returns the number of processes that send to the same servers; each has its part of the retries that
   * are always allowed, at least one.
   */
  constructor(clock: Clock, gateways: () => number = () => 1) {
    this.#clock = clock;
    this.#gateways = gateways;
  }

  requested(): void {
    this.#turn();
    this.#requests++;
  }

  /** Returns whether another retry is allowed, and counts it if so. */
  take(): boolean {
    if (!this.hasMore) return false;
    this.#retries++;
    return true;
  }

  get hasMore(): boolean {
    this.#turn();
    const least = Math.max(1, Math.floor(always / this.#gateways()));
    const allowed = least + share * (this.#requests + this.#requestsBefore);
    return this.#retries + this.#retriesBefore + 1 <= allowed;
  }

  #turn(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#halfEndsMs) return;
    const isNext = nowMs < this.#halfEndsMs + halfMs;
    this.#requestsBefore = isNext ? this.#requests : 0;
    this.#retriesBefore = isNext ? this.#retries : 0;
    this.#requests = 0;
    this.#retries = 0;
    this.#halfEndsMs = nowMs + halfMs;
  }
}
