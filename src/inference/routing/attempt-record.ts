// Counts the attempts at an engine, or at one of its models, and decides whether the engine or model is failing.
import {
  type AttemptDelta,
  type AttemptHealth,
  attemptWindowSeconds,
  type Fault,
} from "../../domain/usage/attempt-health.ts";

const slotMs = 10_000;
const slots = (attemptWindowSeconds * 1000) / slotMs;
/**
 * The server counts as failing after this many consecutive failures, or after fewer failures over at least `failingMs`.
 */
const fewestFailures = 5;
const failingMs = 10_000;
/** Milliseconds without attempts after which the last failure is forgotten. */
const forgottenMs = 600_000;

export class AttemptRecord {
  /**
   * Number of attempts in slots of ten seconds. The first half of the array counts successes, the second half failures.
   */
  readonly #counts = new Uint32Array(2 * slots);
  /** Number of the newest slot, counted from the start of monotonic time. */
  #slot = 0;
  #failures = 0;
  /**
   * Time in monotonic milliseconds of the first of the consecutive failures. `#lastMs` is the time of the last failure.
   */
  #sinceMs = 0;
  #lastMs = 0;
  #last: Fault | null = null;
  #worked = 0;
  #failed = 0;
  /** Time in monotonic milliseconds of the last success. -1 if there was none. */
  #workedMs = -1;
  #isFailing = false;

  worked(nowMs: number): void {
    this.#roll(nowMs);
    (this.#counts[this.#slot % slots] as number)++;
    this.#worked++;
    this.#failures = 0;
    this.#isFailing = false;
    this.#workedMs = nowMs;
  }

  failed(fault: Fault, nowMs: number): void {
    this.#fail(1, 1, fault, nowMs);
  }

  /** Adds the attempts of another process. */
  add({ worked, failed, failures, last }: AttemptDelta, nowMs: number): void {
    this.#roll(nowMs);
    if (worked > 0) {
      this.worked(nowMs);
      this.#counts[this.#slot % slots] = (this.#counts[this.#slot % slots] as number) + worked - 1;
    }
    if (last) this.#fail(failed, failures, last, nowMs);
  }

  /** Returns the attempts since the last call, or undefined if there were none. */
  take(): AttemptDelta | undefined {
    const [worked, failed] = [this.#worked, this.#failed];
    if (worked + failed === 0) return undefined;
    this.#worked = 0;
    this.#failed = 0;
    return { worked, failed, failures: Math.min(failed, this.#failures), last: failed > 0 ? this.#last : null };
  }

  /** Reports whether the last attempt failed and is not forgotten yet. */
  isDoubted(nowMs: number): boolean {
    return this.#failures > 0 && nowMs - this.#lastMs < forgottenMs;
  }

  /** True if the last attempt succeeded. */
  get isProven(): boolean {
    return this.#workedMs >= 0 && this.#failures === 0;
  }

  /**
   * Reports whether the server is failing. A single failure counts only if there were earlier failures in the window,
   * because a server that is suspended after failures does not soon get a second request.
   */
  isFailing(nowMs: number): boolean {
    if (!this.isDoubted(nowMs)) this.#isFailing = false;
    else if (this.#failures >= fewestFailures) this.#isFailing = true;
    else if (nowMs - this.#sinceMs >= failingMs) this.#isFailing ||= this.#failures > 1 || this.#sums(nowMs).failed > 1;
    return this.#isFailing;
  }

  /** Returns the state as shown to people. `nowSeconds` is the Unix time of `nowMs`. */
  health(nowMs: number, nowSeconds: number): AttemptHealth {
    const { worked, failed } = this.#sums(nowMs);
    const isDoubted = this.isDoubted(nowMs);
    const hasWorked = this.#workedMs >= 0 && nowMs - this.#workedMs < forgottenMs;
    const secondsAt = (ms: number) => Math.round(nowSeconds - (nowMs - ms) / 1000);
    return {
      attempts: worked + failed,
      failed,
      isFailing: this.isFailing(nowMs),
      since: isDoubted ? secondsAt(this.#sinceMs) : null,
      last: this.#last && (isDoubted || failed > 0) ? { ...this.#last, at: secondsAt(this.#lastMs) } : null,
      workedAt: hasWorked ? secondsAt(this.#workedMs) : null,
    };
  }

  #sums(nowMs: number): { worked: number; failed: number } {
    this.#roll(nowMs);
    let [worked, failed] = [0, 0];
    for (let i = 0; i < slots; i++) {
      worked += this.#counts[i] as number;
      failed += this.#counts[slots + i] as number;
    }
    return { worked, failed };
  }

  #fail(failed: number, failures: number, fault: Fault, nowMs: number): void {
    this.#roll(nowMs);
    const at = slots + (this.#slot % slots);
    this.#counts[at] = (this.#counts[at] as number) + failed;
    this.#failed += failed;
    this.#last = fault;
    if (failures === 0) return;
    if (!this.isDoubted(nowMs)) {
      this.#failures = 0;
      this.#sinceMs = nowMs;
    }
    this.#failures += failures;
    this.#lastMs = nowMs;
  }

  /** Clears the slots that have begun since the last call. */
  #roll(nowMs: number): void {
    const slot = Math.floor(nowMs / slotMs);
    if (slot === this.#slot) return;
    const passed = Math.min(slots, slot - this.#slot);
    for (let i = 1; i <= passed; i++) {
      const at = (this.#slot + i) % slots;
      this.#counts[at] = 0;
      this.#counts[slots + at] = 0;
    }
    this.#slot = slot;
  }
}
