// A range of bytes within a buffer, passed on without copying. An example is a received body behind its head.
import { isAscii } from "node:buffer";

/**
 * A range of a buffer, cheaper than a Buffer view. Creating and collecting a view, which is a typed array, costs more
 * than copying a short body.
 */
export class ByteSpan {
  /** The bytes within the span must not be changed. */
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;

  constructor(buffer: Buffer, start: number, end: number) {
    this.buffer = buffer;
    this.start = start;
    this.end = end;
  }

  /** A span of all bytes, or of the UTF-8 of a text. */
  static of(bytes: Uint8Array | string): ByteSpan {
    const buffer =
      typeof bytes === "string"
        ? Buffer.from(bytes)
        : bytes instanceof Buffer
          ? bytes
          : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new ByteSpan(buffer, 0, buffer.length);
  }

  /** Joins spans. If there is only one span, returns it as it is. `length` is the total length of the spans. */
  static joined(spans: readonly ByteSpan[], length: number): ByteSpan {
    const [first = noBytes] = spans;
    if (spans.length < 2) return first;
    const buffer = Buffer.allocUnsafeSlow(length);
    let at = 0;
    for (const span of spans) {
      span.copyTo(buffer, at);
      at += span.length;
    }
    return ByteSpan.of(buffer);
  }

  get length(): number {
    return this.end - this.start;
  }

  /** The bytes as a Buffer. Each call creates a view, unless the span fills the whole buffer. */
  get view(): Buffer {
    return this.length === this.buffer.length ? this.buffer : this.buffer.subarray(this.start, this.end);
  }

  /** The bytes decoded as UTF-8. ASCII, the most common case, needs no decoding. */
  get text(): string {
    const { view } = this;
    return view.toString(isAscii(view) ? "latin1" : "utf8");
  }

  /** Returns the span itself, because its bytes are contiguous. A PatchedSpan must copy its parts for this. */
  get solid(): ByteSpan {
    return this;
  }

  /** Returns the bytes as one view, or no view if the span is empty. A PatchedSpan returns several. */
  get pieces(): Uint8Array[] {
    return this.length === 0 ? [] : [this.view];
  }

  copyTo(target: Uint8Array, at: number): void {
    this.buffer.copy(target, at, this.start, this.end);
  }
}

/**
 * A span in which a range of bytes is replaced. The parts are only joined if a caller copies them anyway, for example
 * behind a head.
 */
export class PatchedSpan {
  readonly length: number;
  readonly #span: ByteSpan;
  /** Offset of the insertion, in the buffer of the span. */
  readonly #from: number;
  readonly #to: number;
  readonly #insert: Buffer;

  /** `insert` replaces the bytes from `from` to `to`, counted from the start of `span`. */
  constructor(span: ByteSpan, from: number, to: number, insert: Buffer) {
    this.length = span.length - (to - from) + insert.length;
    this.#span = span;
    this.#from = span.start + from;
    this.#to = span.start + to;
    this.#insert = insert;
  }

  /** Returns all bytes in one new buffer. Each call copies them. */
  get solid(): ByteSpan {
    const buffer = Buffer.allocUnsafeSlow(this.length);
    this.copyTo(buffer, 0);
    return ByteSpan.of(buffer);
  }

  /**
   * Returns views of the non-empty parts, in order. A copy would stay in memory as long as callers keep the pieces,
   * without being counted on a memory account.
   */
  get pieces(): Uint8Array[] {
    const { buffer, start, end } = this.#span;
    const pieces = [buffer.subarray(start, this.#from), this.#insert, buffer.subarray(this.#to, end)];
    return pieces.filter(({ byteLength }) => byteLength > 0);
  }

  copyTo(target: Uint8Array, at: number): void {
    const { buffer, start, end } = this.#span;
    const insertAt = at + this.#from - start;
    buffer.copy(target, at, start, this.#from);
    target.set(this.#insert, insertAt);
    buffer.copy(target, insertAt + this.#insert.length, this.#to, end);
  }
}

export interface Patch {
  /** The patch replaces the bytes of the span from offset `from` up to offset `to`. */
  from: number;
  to: number;
  insert: Buffer;
}

/** Returns the span with these patches, which must be in order. */
export function patched(span: ByteSpan, patches: readonly Patch[]): Bytes {
  const [first] = patches;
  if (first === undefined) return span;
  if (patches.length === 1) return new PatchedSpan(span, first.from, first.to, first.insert);
  let { length } = span;
  for (const { from, to, insert } of patches) length += insert.length - (to - from);
  const result = Buffer.allocUnsafeSlow(length);
  let [at, offset] = [span.start, 0];
  for (const { from, to, insert } of patches) {
    offset += span.buffer.copy(result, offset, at, span.start + from);
    offset += insert.copy(result, offset);
    at = span.start + to;
  }
  span.buffer.copy(result, offset, at, span.end);
  return ByteSpan.of(result);
}

/** Bytes of a body, with or without replaced parts. */
export type Bytes = ByteSpan | PatchedSpan;

/** A byte-order mark has no meaning in UTF-8, and JSON must not begin with one (RFC 8259, 8.1). */
export function withoutMark(bytes: ByteSpan): ByteSpan {
  const { buffer, start, end } = bytes;
  if (buffer[start] !== 0xef || end - start < 3) return bytes;
  return buffer[start + 1] === 0xbb && buffer[start + 2] === 0xbf ? new ByteSpan(buffer, start + 3, end) : bytes;
}

/** An empty body. */
export const noBytes = ByteSpan.of(Buffer.alloc(0));
