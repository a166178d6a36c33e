// A body that is made while it is taken, as fast as that is.
import type { BodySink, BodySource } from "../../src/base/bytes/body-source.ts";
import type { ByteSpan } from "../../src/base/bytes/byte-span.ts";

export class EndlessBody implements BodySource {
  readonly #next: () => ByteSpan | undefined;
  #sink: BodySink | undefined;
  #paused = false;
  #isDue = false;

  /** `next`: the next piece; undefined: it ends after all. */
  constructor(next: () => ByteSpan | undefined) {
    this.#next = next;
  }

  flow(sink: BodySink): void {
    this.#sink = sink;
    this.#give();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#give();
  }

  cancel(): void {
    this.#sink = undefined;
  }

  #give(): void {
    const sink = this.#sink;
    if (this.#paused || !sink) return;
    const piece = this.#next();
    if (piece === undefined) {
      this.#sink = undefined;
      sink.end();
      return;
    }
    sink.data(piece);
    if (this.#isDue) return;
    this.#isDue = true;
    // What the other end says is heard between.
    setImmediate(() => {
      this.#isDue = false;
      this.#give();
    });
  }
}
