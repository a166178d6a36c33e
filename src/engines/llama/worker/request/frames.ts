// When streamed answers are written: all of them together, at most once in the time of a screen's frame.
// One write a token would cost the machine, gateway and client included, a good part of the time in which a fast model
// makes that token; and each stream at a time of its own would wake them all as often as there are streams.
import type { Batching } from "../batching.ts";

/** Sixty frames a second. */
const screenFrameMs = 16;

export class Frames {
  readonly #batching: Batching;
  readonly #frameMs: number;
  #writes: (() => void)[] = [];
  /** Time of the last write, by `performance.now()`. */
  #lastMs = Number.NEGATIVE_INFINITY;
  readonly #run = () => this.#writeAll();

  constructor(batching: Batching, frameMs = screenFrameMs) {
    this.#batching = batching;
    this.#frameMs = frameMs;
  }

  /** Runs `write` once, with those of other streams; soon where nothing was written for a frame. */
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
