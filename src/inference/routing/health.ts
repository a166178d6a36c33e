// Health of an engine or of one of its models: suspended after a failure, then tested by a single request.
import type { HealthState } from "../../wire/upstreams.ts";

/**
 * `ready`: the suspension is over, and the next request is the test. `trying`: a test request is running, and others
 * must wait.
 */
export type { HealthState };

const firstRestMs = 2_000;
const maxRestMs = 60_000;
/** Random fraction by which suspensions vary, so that engines that failed together are not tested together. */
const jitter = 0.1;
/** Milliseconds after which another request may test, if the first one has no result yet. */
const maxTrialMs = 60_000;

export class Health {
  /** End of the suspension in monotonic milliseconds; 0 if healthy. */
  #restUntilMs = 0;
  #trialUntilMs = 0;
  /** Length of the last suspension without jitter; 0 if the next one starts short again. */
  #restMs = 0;
  #recoveredMs = Number.NEGATIVE_INFINITY;

  get isWell(): boolean {
    return this.#restUntilMs === 0;
  }

  /** Monotonic time of the last recovery from a suspension. */
  get recoveredMs(): number {
    return this.#recoveredMs;
  }

  state(nowMs: number): HealthState {
    if (this.#restUntilMs === 0) return "ok";
    if (nowMs < this.#restUntilMs) return "resting";
    return nowMs < this.#trialUntilMs ? "trying" : "ready";
  }

  /** Returns the remaining milliseconds of the suspension; 0 if it is over. */
  restLeftMs(nowMs: number): number {
    return Math.max(0, this.#restUntilMs - nowMs);
  }

  /** Returns true if the caller may send the test request. Its result must be reported, or `release` called. */
  claim(nowMs: number): boolean {
    if (this.state(nowMs) !== "ready") return false;
    this.#trialUntilMs = nowMs + maxTrialMs;
    return true;
  }

  /** Called if the test request had no result, for example because the client left. */
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
   * Begins a suspension after a failure. Its length doubles, up to a minute, after a failed test and after a recovery
   * that lasted for less time than the previous suspension. Failures during a suspension do not count, because their
   * requests were sent earlier. Returns whether a suspension began.
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
