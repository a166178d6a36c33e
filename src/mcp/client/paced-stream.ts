// Hands the bytes of an event stream on a few lines at a time, with other work of the event loop in between.
import type { BodySource } from "../../base/bytes/body-source.ts";

/** Maximum line ends and bytes that are handed on at once. Each event costs work, whatever its length. */
const [maxLines, maxBytes] = [64, 65_536];
const [lineFeed, carriageReturn] = [10, 13];

export class PacedStream {
  readonly #body: Pick<BodySource, "pause" | "resume">;
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  #rest: Uint8Array[] = [];
  /** Closes or fails the stream after the rest. */
  #last: (() => void) | undefined;
  #isResting = false;
  #isOver = false;

  constructor(body: Pick<BodySource, "pause" | "resume">, controller: ReadableStreamDefaultController<Uint8Array>) {
    this.#body = body;
    this.#controller = controller;
  }

  /** Takes bytes that nothing else writes to. */
  push(bytes: Uint8Array): void {
    this.#rest.push(...slicesOf(bytes));
    this.next();
  }

  /** Calls `last` when all bytes are handed on. */
  end(last: () => void): void {
    this.#last = last;
    this.next();
  }

  /** Drops what is not handed on yet. */
  cancel(): void {
    this.#rest = [];
    this.#isOver = true;
  }

  /** Hands the next slice on, if the reader wants it and the previous one was not handed on in this tick. */
  next(): void {
    if (this.#isResting || this.#isOver) return;
    const [slice] = this.#rest;
    if (!slice && this.#last) {
      this.#isOver = true;
      this.#last();
    } else if (!slice) this.#body.resume();
    else if ((this.#controller.desiredSize ?? 0) > 0) {
      this.#rest.shift();
      this.#isResting = true;
      this.#controller.enqueue(slice);
      setImmediate(() => {
        this.#isResting = false;
        this.next();
      });
    }
    if (this.#rest.length > 0) this.#body.pause();
  }
}

function slicesOf(bytes: Uint8Array): Uint8Array[] {
  const slices: Uint8Array[] = [];
  let [from, lines] = [0, 0];
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === lineFeed || bytes[at] === carriageReturn) lines++;
    if (lines < maxLines && at - from < maxBytes - 1) continue;
    slices.push(bytes.subarray(from, at + 1));
    [from, lines] = [at + 1, 0];
  }
  if (from < bytes.length) slices.push(bytes.subarray(from));
  return slices;
}
