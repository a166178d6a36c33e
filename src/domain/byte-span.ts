// Bytes somewhere in a buffer, handed on where they lie: a body as it was received, with a head before it and perhaps more behind.
import { isAscii } from "node:buffer";

/** A view, which is a typed array of its own, costs more to make and to collect than a short body to copy. */
export class ByteSpan {
  /** What is in it stays as it is. */
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;

  constructor(buffer: Buffer, start: number, end: number) {
    this.buffer = buffer;
    this.start = start;
    this.end = end;
  }

  /** All of them; the UTF-8 of a text. */
  static of(bytes: Uint8Array | string): ByteSpan {
    const buffer =
      typeof bytes === "string"
        ? Buffer.from(bytes)
        : bytes instanceof Buffer
          ? bytes
          : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new ByteSpan(buffer, 0, buffer.length);
  }

  get length(): number {
    return this.end - this.start;
  }

  /** For those who need a typed array; made at each call, unless it is all of the buffer. */
  get view(): Buffer {
    return this.length === this.buffer.length ? this.buffer : this.buffer.subarray(this.start, this.end);
  }

  /** What they mean as UTF-8. ASCII, as most is, needs no decoding. */
  get text(): string {
    const { view } = this;
    return view.toString(isAscii(view) ? "latin1" : "utf8");
  }

  copyTo(target: Uint8Array, at: number): void {
    this.buffer.copy(target, at, this.start, this.end);
  }
}

/** A body of no bytes. */
export const noBytes = ByteSpan.of(Buffer.alloc(0));
