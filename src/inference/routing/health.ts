// The health of an engine, or of one of its models. After a failure, an engine is suspended, and then tested with a
// single request.
import type { HealthState } from "../../wire/upstreams.ts";

/**
 * The state of health. `ready`: the suspension is over, and the next request is the test. `trying`: a test request is
 * running, and other requests must wait.
 */
export type { HealthState };

const firstRestMs = 2_000;
const maxRestMs = 60_000;
/**
 * Fraction by which the length of suspensions varies at random, so that engines that failed together are not tested
 * together.
 */
const jitter = 0.1;
/** Milliseconds after which another request may be the test if the first one has no result yet. */
const maxTrialMs = 60_000;

export class Health {
  /** Time in monotonic milliseconds at which the suspension ends. 0 if healthy. */
  #restUntilMs = 0;
  #trialUntilMs = 0;
  /** Length of the last suspension, without jitter. 0 if the next suspension begins with the shortest length. */
  #restMs = 0;
  #recoveredMs = Number.NEGATIVE_INFINITY;

  get isWell(): boolean {
    return this.#restUntilMs === 0;
  }

  /** Time in monotonic milliseconds of the last recovery from a suspension. */
  get recoveredMs(): number {
    return this.#recoveredMs;
  }

  state(nowMs: number): HealthState {
    if (this.#restUntilMs === 0) return "ok";
    if (nowMs < this.#restUntilMs) return "resting";
    return nowMs < this.#trialUntilMs ? "trying" : "ready";
  }

  /** Returns the milliseconds that are left of the suspension, or 0 if it is over. */
  restLeftMs(nowMs: number): number {
    return Math.max(0, this.#restUntilMs - nowMs);
  }

  /**
   * Returns true if the caller may send the test request. The caller must then report its result, or call `release`.
   */
  claim(nowMs: number): boolean {
    if (this.state(nowMs) !== "ready") return false;
    this.#trialUntilMs = nowMs + maxTrialMs;
    return true;
  }

  /**
   * Called if the test request had no result, for example because the client left. Another request may then be the
   * test.
   */
  release(): void {
    this.#trialUntilMs = 0;
  }

  succeeded(nowMs: number): void {
    if (this.#restUntilMs === 0) return;
    // A success during the suspension shows that there was no outage, so the next suspension is short.
    if (nowMs < this.#restUntilMs) this.#restMs = 0;
    this.#restUntilMs = 0;
    this.#trialUntilMs = 0;
    this.#recoveredMs = nowMs;
  }

  /**
   * Begins a suspension after a failure. The length doubles, up to a minute, if a test failed, or if less time has
   * passed since the last recovery than the previous suspension lasted. Failures during a suspension do not count,
   * because their requests were sent earlier. Returns whether a suspension began.
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
