// Schedules the writes of all streamed answers together, at most once per screen frame. A write for each token
// would cost too much time with a fast model, and separate timers for each stream would cause too many wake-ups.
import type { Batching } from "../batching.ts";

/** The duration of a frame at sixty frames a second. */
const screenFrameMs = 16;

export class Frames {
  readonly #batching: Batching;
  readonly #frameMs: number;
  #writes: (() => void)[] = [];
  /** The time of the last writes, by `performance.now()`. */
  #lastMs = Number.NEGATIVE_INFINITY;
  readonly #run = () => this.#writeAll();

  constructor(batching: Batching, frameMs = screenFrameMs) {
    this.#batching = batching;
    this.#frameMs = frameMs;
  }

  /**
   * Runs `write` once, together with the writes of other streams. If no write ran during the last frame, `write` runs
   * soon.
   */
  add(write: () => void): void {
    this.#writes.push(write);
    if (this.#writes.length > 1) return;
    const leftMs = this.#lastMs + this.#frameMs - performance.now();
    if (leftMs > 0) setTimeout(this.#run, leftMs);
    else this.#batching.afterwards(this.#run);
  }

  #writeAll(): void {
    const writes = this.#writes;
    this.#writes = [];
    this.#lastMs = performance.now();
    for (const write of writes) write();
  }
}
