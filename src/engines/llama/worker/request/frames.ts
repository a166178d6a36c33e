// Decides when streamed answers are written: all together, at most once per screen frame. One write per token would
// cost the machine, with gateway and client, much of the time in which a fast model makes that token. Separate times
// for each stream would wake them all as often as there are streams.
import type { Batching } from "../batching.ts";

/** Sixty frames a second. */
const screenFrameMs = 16;

export class Frames {
  readonly #batching: Batching;
  readonly #frameMs: number;
  #writes: (() => void)[] = [];
  /** The time of the last write, by `performance.now()`. */
  #lastMs = Number.NEGATIVE_INFINITY;
  readonly #run = () => this.#writeAll();

  constructor(batching: Batching, frameMs = screenFrameMs) {
    this.#batching = batching;
    this.#frameMs = frameMs;
  }

  /** Runs `write` once, together with the writes of other streams. It runs soon if nothing was written for a frame. */
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
