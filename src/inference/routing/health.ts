// Decides whether an engine, or one of its models, may be asked: it is suspended after a failure, and then one request
// tests it.
import type { HealthState } from "../../wire/upstreams.ts";

/**
 * `ready`: the suspension is over and the next request tests it; `trying`: a request tests it, and others wait for the
 * result.
 */
export type { HealthState };

const firstRestMs = 2_000;
const maxRestMs = 60_000;
/** Suspensions vary by up to this part in either direction, so that what failed together is not tested together. */
const jitter = 0.1;
/**
 * Milliseconds without a verdict after which another request may test: the first one may be delayed by something else.
 */
const maxTrialMs = 60_000;

export class Health {
  /** End of the suspension in monotonic milliseconds; 0 if healthy. */
  #restUntilMs = 0;
  #trialUntilMs = 0;
  /** Length of the last suspension without jitter; 0 if it no longer matters. */
  #restMs = 0;
  #recoveredMs = Number.NEGATIVE_INFINITY;

  get isWell(): boolean {
    return this.#restUntilMs === 0;
  }

  /** Time of the last recovery after a suspension. */
  get recoveredMs(): number {
    return this.#recoveredMs;
  }

  state(nowMs: number): HealthState {
    if (this.#restUntilMs === 0) return "ok";
    if (nowMs < this.#restUntilMs) return "resting";
    return nowMs < this.#trialUntilMs ? "trying" : "ready";
  }

  /** Returns the milliseconds until the suspension is over; 0 if it is. */
  restLeftMs(nowMs: number): number {
    return Math.max(0, this.#restUntilMs - nowMs);
  }

  /**
   * Returns true for the first request that asks in the state `ready`: this request tests and must later call
   * `release` or give a verdict.
   */
  claim(nowMs: number): boolean {
    if (this.state(nowMs) !== "ready") return false;
    this.#trialUntilMs = nowMs + maxTrialMs;
    return true;
  }

  /** Called if the test had no verdict, for example because the client left. */
  release(): void {
    this.#trialUntilMs = 0;
  }

  succeeded(nowMs: number): void {
    if (this.#restUntilMs === 0) return;
    // An answer to an earlier request shows that there was no outage, so the next suspension is short.
    if (nowMs < this.#restUntilMs) this.#restMs = 0;
    this.#restUntilMs = 0;
    this.#trialUntilMs = 0;
    this.#recoveredMs = nowMs;
  }

  /**
   * Suspends after a failure. Suspensions double, up to a minute, if it fails again before it was healthy for as long
   * as it was suspended. Failures during a suspension do not count, because their requests were sent earlier. Returns
   * whether a suspension begins.
   */
  failed(nowMs: number, random: () => number): boolean {
    if (nowMs < this.#restUntilMs) return false;
    const again = this.#restUntilMs > 0 || nowMs - this.#recoveredMs < this.#restMs;
    this.#restMs = again ? Math.min(Math.max(this.#restMs * 2, firstRestMs), maxRestMs) : firstRestMs;
    this.#restUntilMs = nowMs + this.#restMs * (1 - jitter + 2 * jitter * random());
    this.#trialUntilMs = 0;
    return true;
  }
}
