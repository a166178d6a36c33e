// Hands the output of an MCP server on a few lines at a time, with other work of the event loop in between.
import type { BodySource } from "../../base/bytes/body-source.ts";

/** Maximum line ends and bytes that are handed on in one tick. Each event costs work, whatever its length. */
export const maxLines = 64;
const maxBytes = 65_536;
const [lineFeed, carriageReturn] = [10, 13];

/** The part of a stream's controller that is used. */
type Receiver = Pick<ReadableStreamDefaultController<Uint8Array>, "desiredSize" | "enqueue">;

/** Bytes of a stream with the number of their line ends. */
interface Slice {
  readonly bytes: Uint8Array;
  readonly lines: number;
}

export class PacedStream {
  readonly #body: Pick<BodySource, "pause" | "resume">;
  readonly #receiver: Receiver;
  #rest: Slice[] = [];
  /** Closes or fails the stream after the rest. */
  #last: (() => void) | undefined;
  /** Line ends and bytes that were handed on in this tick; undefined if none were. */
  #done: { lines: number; bytes: number } | undefined;
  #isOver = false;

  constructor(body: Pick<BodySource, "pause" | "resume">, receiver: Receiver) {
    this.#body = body;
    this.#receiver = receiver;
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

  /** Hands on what the receiver wants, up to the maximum of a tick. */
  next(): void {
    for (let [slice] = this.#rest; slice && this.#mayHandOn(); [slice] = this.#rest) {
      this.#rest.shift();
      this.#count(slice);
      this.#receiver.enqueue(slice.bytes);
    }
    if (this.#isOver) return;
    if (this.#rest.length > 0) this.#body.pause();
    else if (!this.#last) this.#body.resume();
    else {
      this.#isOver = true;
      this.#last();
    }
  }

  #mayHandOn(): boolean {
    const { lines, bytes } = this.#done ?? { lines: 0, bytes: 0 };
    return (this.#receiver.desiredSize ?? 0) > 0 && lines < maxLines && bytes < maxBytes;
  }

  #count({ lines, bytes }: Slice): void {
    if (!this.#done) {
      this.#done = { lines: 0, bytes: 0 };
      setImmediate(() => {
        this.#done = undefined;
        this.next();
      });
    }
    this.#done.lines += lines;
    this.#done.bytes += bytes.length;
  }
}

/** Divides bytes so that each slice may be handed on at once. */
export function slicesOf(bytes: Uint8Array): Slice[] {
  const slices: Slice[] = [];
  let [from, lines] = [0, 0];
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === lineFeed || bytes[at] === carriageReturn) lines++;
    if (lines < maxLines && at - from < maxBytes - 1) continue;
    slices.push({ bytes: bytes.subarray(from, at + 1), lines });
    [from, lines] = [at + 1, 0];
  }
  if (from < bytes.length) slices.push({ bytes: bytes.subarray(from), lines });
  return slices;
}
