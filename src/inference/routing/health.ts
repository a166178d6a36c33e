// Whether an engine, or one model on it, is to be asked: it rests after a failure, and then one request tries it.
import type { HealthState } from "../../wire/upstreams.ts";

/**
 * `ready`: its rest is over, and the next who asks tries it; `trying`: somebody does, and the others wait for what comes
 * of it.
 */
export type { HealthState };

const firstRestMs = 2_000;
const maxRestMs = 60_000;
/** Rests differ by up to this part either way, so that what failed together is not tried together. */
const jitter = 0.1;
/** Without a verdict for so long, another may try: whoever tried may be held up by something else. */
const maxTrialMs = 60_000;

export class Health {
  /** Monotonic milliseconds; 0: it is well. */
  #restUntilMs = 0;
  #trialUntilMs = 0;
  /** Length of the last rest, before its jitter; 0: none that matters any more. */
  #restMs = 0;
  #recoveredMs = Number.NEGATIVE_INFINITY;

  get isWell(): boolean {
    return this.#restUntilMs === 0;
  }

  /** When it was last found well after a rest. */
  get recoveredMs(): number {
    return this.#recoveredMs;
  }

  state(nowMs: number): HealthState {
    if (this.#restUntilMs === 0) return "ok";
    if (nowMs < this.#restUntilMs) return "resting";
    return nowMs < this.#trialUntilMs ? "trying" : "ready";
  }

  /** Until its rest is over; 0 where it is. */
  restLeftMs(nowMs: number): number {
    return Math.max(0, this.#restUntilMs - nowMs);
  }

  /** Whoever asks for it when it is ready is the one that tries it; give `release` or a verdict later. */
  claim(nowMs: number): boolean {
    if (this.state(nowMs) !== "ready") return false;
    this.#trialUntilMs = nowMs + maxTrialMs;
    return true;
  }

  /** The trial came to no verdict, as when its client left. */
  release(): void {
    this.#trialUntilMs = 0;
  }

  succeeded(nowMs: number): void {
    if (this.#restUntilMs === 0) return;
    // An answer to what was sent before the failure tells that it was no outage: the next rest begins small.
    if (nowMs < this.#restUntilMs) this.#restMs = 0;
    this.#restUntilMs = 0;
    this.#trialUntilMs = 0;
    this.#recoveredMs = nowMs;
  }

  /**
   * Rests double, up to a minute, while it fails again before it was well for as long as it rested. Of those that fail
   * during a rest nothing is learned: they were sent before. Gives whether a rest begins.
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
