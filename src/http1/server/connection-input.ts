// Parses the requests on a connection from the received bytes, and refuses invalid requests as early as possible.
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { HeadError, isTokenByte } from "../head.ts";
import { maxPeerLineLength, noPeerLine, readPeerLine } from "../peer-line.ts";
import { ConnectionBody } from "./connection-body.ts";
import { HeadMemory, SharedHeads } from "./known-head.ts";
import { type ReadRequest, readRequest } from "./read-request.ts";
import type { Http1Limits } from "./server-limits.ts";

const sharedHeads = new SharedHeads<ReadRequest>();

export class ConnectionInput {
  /** The body of the last request. Undefined if there is none. If the body has arrived completely, it is a ByteSpan. */
  body: ByteSpan | ConnectionBody | undefined;
  /** The client's address from the line that precedes a request, once that line has arrived. */
  peer: string | undefined;
  readonly #limits: Http1Limits;
  readonly #reportsPeers: boolean;
  #bytes: Buffer | undefined;
  /** The buffer in which several pieces were joined. Undefined if none were joined. */
  #own: Buffer | undefined;
  /** The number of input bytes in which the end of the headers was not found. */
  #searchedBytes = 0;
  readonly #heads: HeadMemory<ReadRequest>;

  /** If `reportsPeers` is true, each request is preceded by a line with the client's address. */
  constructor(limits: Http1Limits, reportsPeers = false) {
    this.#limits = limits;
    this.#reportsPeers = reportsPeers;
    this.#heads = new HeadMemory(sharedHeads, limits.headBytes);
  }

  get length(): number {
    return this.#bytes === undefined ? 0 : this.#bytes.length;
  }

  /** Reports whether a part of the headers has arrived. */
  get partial(): boolean {
    return this.#searchedBytes > 0;
  }

  append(bytes: Buffer, start: number): void {
    const more = start === 0 ? bytes : bytes.subarray(start);
    this.#bytes = this.#bytes ? this.#joined(this.#bytes, more) : more;
  }

  /**
   * Appends `more` to the buffered bytes. A full buffer is doubled, so that bytes that arrive one by one do not cause a
   * copy each. Bytes that were returned earlier do not change.
   */
  #joined(buffered: Buffer, more: Buffer): Buffer {
    const own = this.#own;
    const isOwn = own !== undefined && buffered.buffer === own.buffer;
    const start = isOwn ? buffered.byteOffset - own.byteOffset : 0;
    const end = start + buffered.length + more.length;
    if (isOwn && end <= own.length) {
      more.copy(own, start + buffered.length);
      return own.subarray(start, end);
    }
    const length = buffered.length + more.length;
    this.#own = Buffer.allocUnsafeSlow(2 * length);
    buffered.copy(this.#own);
    more.copy(this.#own, buffered.length);
    return this.#own.subarray(0, length);
  }

  /** Returns the remaining bytes and removes them from the input. */
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

  /**
   * Returns the next request and sets `body`. Returns undefined while the headers are incomplete. Throws a HeadError
   * for invalid headers.
   */
  take(): ReadRequest | undefined {
    if (this.#reportsPeers) this.peer ??= this.#takePeer();
    const bytes = this.#bytes;
    if (!bytes || (this.#reportsPeers && this.peer === undefined)) return undefined;
    const known = this.#searchedBytes === 0 ? this.#heads.find(bytes) : undefined;
    if (known) {
      this.#takeBody(bytes, this.#heads.bodyStart, known.bodyLength);
      return known;
    }
    // An empty line before a request is ignored, as RFC 9112, 2.2 requires.
    const start = bytes[0] === carriageReturn && bytes[1] === lineFeed ? 2 : 0;
    const end = findHeadEnd(bytes, start, this.#searchedBytes, this.#limits);
    if (end < 0) {
      this.#searchedBytes = bytes.length;
      // The bytes are copied if they are a small part of a large buffer, because that buffer would stay in memory.
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
 * Returns the offset of the empty line after the headers, or -1 if that line has not arrived. Bytes before `searched`
 * have been searched already. Throws a HeadError if the headers are invalid or too long.
 */
function findHeadEnd(bytes: Buffer, start: number, searched: number, limits: Http1Limits): number {
  const end = bytes.indexOf(emptyLine, Math.max(start, searched - (emptyLine.length - 1)));
  const length = (end < 0 ? bytes.length : end + emptyLine.length) - start;
  if (length > limits.requestLineBytes) checkLength(bytes, { start, length, searched }, limits);
  if (end < 0) checkPartial(bytes, start, searched);
  return end;
}

/** Throws a HeadError if the request line or the headers so far are too long. */
function checkLength(
  bytes: Buffer,
  { start, length, searched }: { start: number; length: number; searched: number },
  limits: Http1Limits,
): void {
  // If the earlier search covered more bytes than a request line may have, the request line was found to be short
  // enough.
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

/**
 * Throws a HeadError for bytes that cannot become a request, such as a TLS handshake or LF line ends. Without this
 * check, the client would wait for the timeout.
 */
function checkPartial(bytes: Buffer, start: number, searched: number): void {
  const first = bytes[start];
  const begun = first !== undefined && !(start === 0 && first === carriageReturn && bytes.length === 1);
  if (begun && !isTokenByte(first)) throw new HeadError(400, "A request must begin with its method, such as GET.");
  for (let at = bytes.indexOf(lineFeed, Math.max(start, searched)); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at - 1] !== carriageReturn) throw new HeadError(400, "The lines of a head must end in CRLF.");
  }
}
