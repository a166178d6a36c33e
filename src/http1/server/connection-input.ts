// The bytes of a connection that belong to no request yet: takes requests out of them, refuses early what will never be one.
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { HeadError, isTokenByte } from "../head.ts";
import { maxPeerLineLength, noPeerLine, readPeerLine } from "../peer-line.ts";
import { ConnectionBody } from "./connection-body.ts";
import { HeadMemory, SharedHeads } from "./known-head.ts";
import { type ReadRequest, readRequest } from "./read-request.ts";
import type { Http1Limits } from "./server-limits.ts";

const sharedHeads = new SharedHeads<ReadRequest>();

export class ConnectionInput {
  /** Body of the request that was taken last: undefined where there is none, bytes where all of it is here. */
  body: ByteSpan | ConnectionBody | undefined;
  /** The peer that the line before the next request tells, where there is such a line and it is here. */
  peer: string | undefined;
  readonly #limits: Http1Limits;
  readonly #tellsPeers: boolean;
  #bytes: Buffer | undefined;
  /** A buffer of ours, in whose beginning several pieces were joined. */
  #own: Buffer | undefined;
  /** Bytes that were searched for the end of a head. */
  #searchedBytes = 0;
  readonly #heads: HeadMemory<ReadRequest>;

  /** `tellsPeers`: a line before each request says whose it is. */
  constructor(limits: Http1Limits, tellsPeers = false) {
    this.#limits = limits;
    this.#tellsPeers = tellsPeers;
    this.#heads = new HeadMemory(sharedHeads, limits.headBytes);
  }

  get length(): number {
    return this.#bytes === undefined ? 0 : this.#bytes.length;
  }

  /** Whether a part of a head was looked at, and the rest is waited for. */
  get partial(): boolean {
    return this.#searchedBytes > 0;
  }

  append(bytes: Buffer, start: number): void {
    const more = start === 0 ? bytes : bytes.subarray(start);
    this.#bytes = this.#bytes ? this.#joined(this.#bytes, more) : more;
  }

  /**
   * Behind what is held, where there is room; else in twice the room, so that what comes byte by byte is not copied for each.
   * What was given away of it lies before that and stays as it is.
   */
  #joined(held: Buffer, more: Buffer): Buffer {
    const own = this.#own;
    const isOwn = own !== undefined && held.buffer === own.buffer;
    const start = isOwn ? held.byteOffset - own.byteOffset : 0;
    const end = start + held.length + more.length;
    if (isOwn && end <= own.length) {
      more.copy(own, start + held.length);
      return own.subarray(start, end);
    }
    const length = held.length + more.length;
    this.#own = Buffer.allocUnsafeSlow(2 * length);
    held.copy(this.#own);
    more.copy(this.#own, held.length);
    return this.#own.subarray(0, length);
  }

  /** Gives away what is here. */
  rest(): Buffer | undefined {
    const bytes = this.#bytes;
    this.clear();
    return bytes;
  }

  clear(): void {
    this.#heads.clear();
    this.#bytes = this.#own = undefined;
    this.#searchedBytes = 0;
  }

  /** The head of the next request, and `body`; undefined while it is not complete. Throws a HeadError. */
  take(): ReadRequest | undefined {
    if (this.#tellsPeers) this.peer ??= this.#takePeer();
    const bytes = this.#bytes;
    if (!bytes || (this.#tellsPeers && this.peer === undefined)) return undefined;
    const known = this.#searchedBytes === 0 ? this.#heads.find(bytes) : undefined;
    if (known) {
      this.#takeBody(bytes, this.#heads.bodyStart, known.bodyLength);
      return known;
    }
    // An empty line before a request is forgiven, as RFC 9112, 2.2 asks for.
    const start = bytes[0] === carriageReturn && bytes[1] === lineFeed ? 2 : 0;
    const end = findHeadEnd(bytes, start, this.#searchedBytes, this.#limits);
    if (end < 0) {
      this.#searchedBytes = bytes.length;
      // The buffer that it was cut from may be many times as long, and is not to be held until the head ends.
      if (bytes.buffer.byteLength > Math.max(2 * bytes.length, this.#limits.windowBytes)) {
        this.#bytes = Buffer.allocUnsafeSlow(bytes.length);
        bytes.copy(this.#bytes);
        this.#own = undefined;
      }
      return undefined;
    }
    this.#searchedBytes = 0;
    const text = bytes.toString("latin1", start, end);
    const read = readRequest(text);
    this.#heads.keep(text, read);
    this.#takeBody(bytes, end + emptyLine.length, read.bodyLength);
    return read;
  }

  #takePeer(): string | undefined {
    const bytes = this.#bytes;
    if (!bytes) return undefined;
    const end = bytes.subarray(0, maxPeerLineLength).indexOf(lineEnd);
    if (end < 0) {
      if (bytes.length >= maxPeerLineLength) throw noPeerLine();
      return undefined;
    }
    const start = end + lineEnd.length;
    this.#bytes = start < bytes.length ? bytes.subarray(start) : undefined;
    return readPeerLine(bytes.toString("latin1", 0, end));
  }

  #takeBody(bytes: Buffer, start: number, length: number): void {
    let end = start;
    if (length === 0) {
      this.body = undefined;
    } else if (length > 0 && bytes.length - start >= length) {
      end = start + length;
      this.body = new ByteSpan(bytes, start, end);
    } else {
      const body = new ConnectionBody(length < 0 ? undefined : length, this.#limits.windowBytes);
      if (start < bytes.length) end = body.push(bytes, start);
      this.body = body;
    }
    this.#bytes = end < bytes.length ? bytes.subarray(end) : undefined;
    if (!this.#bytes) this.#own = undefined;
  }
}

const emptyLine = Buffer.from("\r\n\r\n");
const lineEnd = Buffer.from("\r\n");
const carriageReturn = 0x0d;
const lineFeed = 0x0a;

/**
 * Offset of the empty line that ends the head which begins at `start`, or -1 while it is not here. `searched` is how
 * many bytes were looked through before. Throws a HeadError where the head is too long, or can become none.
 */
function findHeadEnd(bytes: Buffer, start: number, searched: number, limits: Http1Limits): number {
  const end = bytes.indexOf(emptyLine, Math.max(start, searched - (emptyLine.length - 1)));
  const length = (end < 0 ? bytes.length : end + emptyLine.length) - start;
  if (length > limits.requestLineBytes) checkLength(bytes, { start, length, searched }, limits);
  if (end < 0) checkPartial(bytes, start, searched);
  return end;
}

/** `length`: of the head, as far as it is here. */
function checkLength(
  bytes: Buffer,
  { start, length, searched }: { start: number; length: number; searched: number },
  limits: Http1Limits,
): void {
  // The line ended where more than it may have was looked through before.
  if (searched - start <= limits.requestLineBytes) {
    const line = bytes.indexOf(lineEnd, start);
    if (line < 0 || line - start > limits.requestLineBytes) {
      throw new HeadError(414, `The request line must be at most ${limits.requestLineBytes} bytes.`);
    }
  }
  if (length > limits.headBytes) {
    throw new HeadError(431, `The head of a request must be at most ${limits.headBytes} bytes.`);
  }
}

/** A TLS hello, or lines that end in LF alone, would else be waited for until the deadline. */
function checkPartial(bytes: Buffer, start: number, searched: number): void {
  const first = bytes[start];
  const begun = first !== undefined && !(start === 0 && first === carriageReturn && bytes.length === 1);
  if (begun && !isTokenByte(first)) throw new HeadError(400, "A request must begin with its method, such as GET.");
  for (let at = bytes.indexOf(lineFeed, Math.max(start, searched)); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at - 1] !== carriageReturn) throw new HeadError(400, "The lines of a head must end in CRLF.");
  }
}
