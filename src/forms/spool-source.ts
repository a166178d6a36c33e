// Gives what was spooled, piece by piece, as fast as it is taken.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";

/** A part of what was spooled, or bytes in the place of one. */
export type Segment = Stretch | { readonly bytes: Buffer };

interface Stretch {
  readonly from: number;
  readonly to: number;
}

export interface SpoolReader {
  /** Fills `buffer` from what was spooled at `at` on; gives how many bytes it did. */
  read(buffer: Buffer, at: number): Promise<number>;
}

/** Bytes that are read at once: one buffer for all of it. */
const pieceBytes = 256 * 1024;

export class SpoolSource implements BodySource {
  readonly #segments: Segment[];
  readonly #reader: SpoolReader;
  #sink: BodySink | undefined;
  #buffer: Buffer | undefined;
  #isPaused = false;
  #isPumping = false;
  #isOver = false;

  constructor(segments: readonly Segment[], reader: SpoolReader) {
    this.#segments = segments.filter((one) => lengthOf(one) > 0);
    this.#reader = reader;
  }

  flow(sink: BodySink): void {
    this.#sink = sink;
    void this.#pump();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    void this.#pump();
  }

  cancel(): void {
    this.#isOver = true;
    this.#sink = undefined;
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (!this.#isPaused && !this.#isOver) await this.#give();
    } catch (error) {
      const sink = this.#sink;
      this.cancel();
      sink?.fail(error);
    } finally {
      this.#isPumping = false;
    }
  }

  async #give(): Promise<void> {
    const [segment] = this.#segments;
    if (segment === undefined) {
      const sink = this.#sink;
      this.cancel();
      sink?.end();
    } else if ("bytes" in segment) {
      this.#segments.shift();
      this.#sink?.data(ByteSpan.of(segment.bytes));
    } else {
      await this.#giveRead(segment);
    }
  }

  async #giveRead({ from, to }: Stretch): Promise<void> {
    this.#buffer ??= Buffer.allocUnsafeSlow(pieceBytes);
    const wanted = this.#buffer.subarray(0, Math.min(pieceBytes, to - from));
    const read = await this.#reader.read(wanted, from);
    if (read <= 0) throw new Error("the spooled form is shorter than it was");
    if (from + read < to) this.#segments[0] = { from: from + read, to };
    else this.#segments.shift();
    this.#sink?.data(new ByteSpan(this.#buffer, 0, read));
  }
}

export function lengthOf(segment: Segment): number {
  return "bytes" in segment ? segment.bytes.length : segment.to - segment.from;
}
