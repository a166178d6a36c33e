// Measures the event-loop delay with a timer.
import { exactMs } from "../base/clock.ts";

interface Slice {
  /** Monotonic milliseconds at the slice's start. */
  sinceMs: number;
  count: number;
  sumMs: number;
  maxMs: number;
}

/**
 * Milliseconds between two samples: ten a second cost about two thousandths of a core. Shorter delays are measured only
 * partly or by chance.
 */
const intervalMs = 100;
const sliceMs = 10_000;
/** Time slices of the last minute, including the current one. */
const maxSlices = 7;

export class EventLoopDelay {
  readonly #now: () => number;
  readonly #slices: Slice[] = [];
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #onSample: (delayMs: number) => void;
  #lastMs: number;

  /** `onSample` receives each sample. */
  constructor(now: () => number = () => exactMs(), onSample: (delayMs: number) => void = () => {}) {
    this.#now = now;
    this.#onSample = onSample;
    this.#lastMs = now();
    this.#timer = setInterval(() => this.sample(), intervalMs);
    this.#timer.unref();
  }

  /** Takes a sample; called by the timer. */
  sample(): void {
    const nowMs = this.#now();
    const delayMs = Math.max(0, nowMs - this.#lastMs - intervalMs);
    this.#lastMs = nowMs;
    let slice = this.#slices.at(-1);
    if (!slice || nowMs - slice.sinceMs >= sliceMs) {
      slice = { sinceMs: nowMs, count: 0, sumMs: 0, maxMs: 0 };
      this.#slices.push(slice);
      if (this.#slices.length > maxSlices) this.#slices.shift();
    }
    slice.count++;
    slice.sumMs += delayMs;
    slice.maxMs = Math.max(slice.maxMs, delayMs);
    this.#onSample(delayMs);
  }

  /** Returns figures of about the last minute in milliseconds. */
  figures(): { meanMs: number; maxMs: number } {
    const count = this.#slices.reduce((sum, slice) => sum + slice.count, 0);
    const sumMs = this.#slices.reduce((sum, slice) => sum + slice.sumMs, 0);
    return { meanMs: count === 0 ? 0 : sumMs / count, maxMs: Math.max(0, ...this.#slices.map(({ maxMs }) => maxMs)) };
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
