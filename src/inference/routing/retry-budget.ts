// Limits the retries of a model's requests, so that an outage does not multiply the load.
import type { Clock } from "../../base/clock.ts";

/** Allowed retries as a fraction of recent requests. `always` is the number of retries that is allowed in any case. */
const share = 0.2;
const always = 10;
const halfMs = 5_000;

/** Counts the requests and retries of the last 5 to 10 seconds, in two periods of 5 seconds. */
export class RetryBudget {
  readonly #clock: Clock;
  readonly #gateways: () => number;
  #requests = 0;
  #retries = 0;
  #repetitions = 0;
  #requestsBefore = 0;
  #retriesBefore = 0;
  #repetitionsBefore = 0;
  #halfEndsMs = 0;

  /**
   * `gateways` returns the number of processes that use the same model servers. The processes share the retries that
   * are allowed in any case, but each has at least one.
   */
  constructor(clock: Clock, gateways: () => number = () => 1) {
    this.#clock = clock;
    this.#gateways = gateways;
  }

  requested(): void {
    this.#turn();
    this.#requests++;
  }

  /** Takes a retry from the budget. Returns false if none is left. */
  take(): boolean {
    if (!this.hasMore) return false;
    this.#retries++;
    return true;
  }

  /**
   * Returns whether a refused request may be sent again in another form. If so, counts the repetition. A refusal costs
   * a server little, so about one repetition for each recent request is allowed. Repetitions do not reduce the retries
   * after failures.
   */
  takeRepetition(): boolean {
    this.#turn();
    const allowed = this.#least + this.#requests + this.#requestsBefore;
    if (this.#repetitions + this.#repetitionsBefore + 1 > allowed) return false;
    this.#repetitions++;
    return true;
  }

  get hasMore(): boolean {
    this.#turn();
    const allowed = this.#least + share * (this.#requests + this.#requestsBefore);
    return this.#retries + this.#retriesBefore + 1 <= allowed;
  }

  get #least(): number {
    return Math.max(1, Math.floor(always / this.#gateways()));
  }

  #turn(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#halfEndsMs) return;
    const isNext = nowMs < this.#halfEndsMs + halfMs;
    this.#requestsBefore = isNext ? this.#requests : 0;
    this.#retriesBefore = isNext ? this.#retries : 0;
    this.#repetitionsBefore = isNext ? this.#repetitions : 0;
    this.#requests = 0;
    this.#retries = 0;
    this.#repetitions = 0;
    this.#halfEndsMs = nowMs + halfMs;
  }
}
