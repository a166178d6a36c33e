// Streams the stored bytes of a form, no faster than the reader consumes them.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { GatewayError } from "../base/errors.ts";

/** A part of what is sent: a range of the stored bytes, or other bytes. */
export type Segment = Stretch | { readonly bytes: Buffer };

interface Stretch {
  readonly from: number;
  readonly to: number;
}

export interface SpoolReader {
  /** Counts bytes of memory. A negative number subtracts them. Returns an error if a limit is exceeded. */
  hold(bytes: number): GatewayError | undefined;
  /** Fills `buffer` with stored bytes from offset `at` on. Resolves to the number of bytes. */
  read(buffer: Buffer, at: number): Promise<number>;
}

/** Bytes of each read. All reads share one buffer. */
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
    if (this.#buffer) this.#reader.hold(-pieceBytes);
    this.#buffer = undefined;
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
    const buffer = this.#room();
    const wanted = buffer.subarray(0, Math.min(pieceBytes, to - from));
    const read = await this.#reader.read(wanted, from);
    if (read <= 0) throw new Error("the spooled form is shorter than it was");
    if (from + read < to) this.#segments[0] = { from: from + read, to };
    else this.#segments.shift();
    this.#sink?.data(new ByteSpan(buffer, 0, read));
  }

  #room(): Buffer {
    if (this.#buffer) return this.#buffer;
    const refusal = this.#reader.hold(pieceBytes);
    if (refusal) throw refusal;
    this.#buffer = Buffer.allocUnsafeSlow(pieceBytes);
    return this.#buffer;
  }
}

export function lengthOf(segment: Segment): number {
  return "bytes" in segment ? segment.bytes.length : segment.to - segment.from;
}
