// Decodes a chunked body while it arrives (RFC 9112, 7.1). Decoding is strict. Chunk extensions are checked and
// dropped. Trailers are kept.
import { type FieldLines, HeadError, isTokenByte, parseFieldLines } from "./head.ts";

/** The most hexadecimal digits of a chunk size: 48 bits, which a number represents exactly. */
const maxSizeDigits = 12;
/** Maximum digits of a chunk size on the fast path. With seven hexadecimal digits, the size stays below 2^31. */
const maxQuickDigits = 7;
/** Maximum bytes of the chunk extensions in one line. `maxTrailerBytes` limits all trailers together. */
const maxExtensionBytes = 256;
const maxTrailerBytes = 8 * 1024;

type State = "size" | "extension" | "size_lf" | "data" | "data_cr" | "data_lf" | "trailer" | "done";

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const semicolon = 0x3b;
const space = 0x20;
const tab = 0x09;

export interface ChunkTaker {
  /** Called with a piece of the body: `bytes` from `start` to `end`. */
  chunkData(bytes: Buffer, start: number, end: number): void;
}

export class ChunkedDecoder {
  #state: State = "size";
  #size = 0;
  #digits = 0;
  #extensionBytes = 0;
  #extensionNamed = false;
  /** The number of bytes of the current chunk that are still missing. */
  #remaining = 0;
  /** The trailers, set at the end of the body if there are any. */
  trailers: FieldLines | undefined;
  readonly #trailers: number[] = [];

  get done(): boolean {
    return this.#state === "done";
  }

  /** True if the next byte begins a chunk. */
  get betweenChunks(): boolean {
    return this.#state === "size" && this.#digits === 0;
  }

  /**
   * Decodes `bytes` from `offset` and passes pieces of the body to `taker`. Returns the offset after the last byte
   * read, which may be the end of the body. Throws a HeadError (400). After this error, the decoder must not be used.
   */
  push(bytes: Buffer, offset: number, taker: ChunkTaker): number {
    let at = offset;
    const { length } = bytes;
    while (at < length && this.#state !== "done") {
      if (this.#state === "size" && this.#digits === 0) at = this.#takeSizeLine(bytes, at);
      if (this.#state === "data") {
        const start = at;
        const end = Math.min(length, start + this.#remaining);
        this.#remaining -= end - start;
        at = this.#remaining === 0 ? this.#takeDataEnd(bytes, end) : end;
        taker.chunkData(bytes, start, end);
      } else {
        this.#take(bytes[at++] as number);
      }
    }
    return at;
  }

  #takeSizeLine(bytes: Uint8Array, start: number): number {
    const end = sizeLineEnd(bytes, start);
    if (end === start) return start;
    this.#state = "data";
    this.#remaining = sizeRead;
    return end;
  }

  /** Reads the line end after a chunk's data, if both bytes have arrived. Returns the next offset. */
  #takeDataEnd(bytes: Uint8Array, start: number): number {
    if (start + 2 <= bytes.length && bytes[start] === carriageReturn && bytes[start + 1] === lineFeed) {
      this.#state = "size";
      return start + 2;
    }
    this.#state = "data_cr";
    return start;
  }

  #take(byte: number): void {
    switch (this.#state) {
      case "size":
        this.#takeSize(byte);
        return;
      case "extension":
        this.#takeExtension(byte);
        return;
      case "size_lf":
        if (byte !== lineFeed) throw malformed();
        this.#beginChunk();
        return;
      case "data_cr":
        if (byte !== carriageReturn) throw new HeadError(400, "A chunk of the body is longer than its size says.");
        this.#state = "data_lf";
        return;
      case "data_lf":
        if (byte !== lineFeed) throw malformed();
        this.#state = "size";
        return;
      case "trailer":
        this.#takeTrailer(byte);
        return;
      case "data":
      case "done":
    }
  }

  #takeSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      if (++this.#digits > maxSizeDigits) throw new HeadError(400, "The size of a chunk of the body is too large.");
      this.#size = this.#size * 16 + digit;
    } else if (this.#digits === 0) {
      throw malformed();
    } else if (byte === carriageReturn) {
      this.#state = "size_lf";
    } else if (byte === semicolon) {
      this.#extensionBytes = 1;
      this.#extensionNamed = false;
      this.#state = "extension";
    } else {
      throw malformed();
    }
  }

  #takeExtension(byte: number): void {
    if (byte === carriageReturn) {
      if (!this.#extensionNamed) throw malformed();
      this.#state = "size_lf";
      return;
    }
    // An extension must have a name (RFC 9112, 7.1.1). The rest of the line is ignored.
    if (byte !== space && byte !== tab) {
      if (!this.#extensionNamed && !isTokenByte(byte)) throw malformed();
      this.#extensionNamed = true;
    }
    if (++this.#extensionBytes > maxExtensionBytes) throw new HeadError(400, "A chunk extension is too long.");
    if ((byte < space && byte !== tab) || byte === 0x7f) throw malformed();
  }

  #beginChunk(): void {
    this.#state = this.#size === 0 ? "trailer" : "data";
    this.#remaining = this.#size;
    this.#size = 0;
    this.#digits = 0;
  }

  /** Reads one byte of the trailers, which end at an empty line. */
  #takeTrailer(byte: number): void {
    const trailers = this.#trailers;
    const before = trailers.at(-1);
    const size = trailers.push(byte);
    if (size > maxTrailerBytes) throw new HeadError(400, "The trailers of the body are too long.");
    if ((before === carriageReturn) !== (byte === lineFeed)) throw malformed();
    if (byte !== lineFeed) return;
    if (size > 2) {
      if (trailers[size - 3] !== lineFeed) return;
      this.trailers = parseFieldLines(Buffer.from(trailers).toString("latin1", 0, size - 4));
    }
    this.#state = "done";
  }
}

/** The chunk size that `sizeLineEnd` parsed last. */
let sizeRead = 0;

/**
 * Parses a line that contains only a chunk size, and returns the next offset. Returns `start` if the line has another
 * form, or if too few bytes have arrived. In both cases, the line must be read byte by byte.
 */
function sizeLineEnd(bytes: Uint8Array, start: number): number {
  if (start + maxQuickDigits + 2 > bytes.length) return start;
  let at = start;
  let size = 0;
  for (; at < start + maxQuickDigits; at++) {
    const digit = hexDigit(bytes[at] as number);
    if (digit < 0) break;
    size = size * 16 + digit;
  }
  if (size === 0 || bytes[at] !== carriageReturn || bytes[at + 1] !== lineFeed) return start;
  sizeRead = size;
  return at + 2;
}

/**
 * Returns the start of the data if `bytes` contains, from `start` on, exactly one complete chunk and nothing else.
 * Returns -1 otherwise, and for a chunk that must be read byte by byte.
 */
export function wholeChunkStart(bytes: Uint8Array, start: number): number {
  const dataStart = sizeLineEnd(bytes, start);
  const dataEnd = bytes.length - 2;
  if (dataStart === start || dataStart + sizeRead !== dataEnd) return -1;
  return bytes[dataEnd] === carriageReturn && bytes[dataEnd + 1] === lineFeed ? dataStart : -1;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function malformed(): HeadError {
  return new HeadError(400, "The body is not in valid chunks.");
}
