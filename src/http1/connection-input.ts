// The bytes of a connection that belong to no request yet: takes requests out of them, refuses early what will never be one.
import { ConnectionBody } from "./connection-body.ts";
import { keepsAlive, requestFraming } from "./framing.ts";
import { HeadError, parseRequestHead, type RequestHead } from "./head.ts";
import type { Http1Limits } from "./server-limits.ts";

export interface TakenRequest {
  head: RequestHead;
  /** Undefined where there is none, bytes where all of it is here. */
  body: Uint8Array | ConnectionBody | undefined;
  keepsAlive: boolean;
  /** Whether the client waits for leave to send the body. */
  expectsContinue: boolean;
}

export class ConnectionInput {
  readonly #limits: Http1Limits;
  #bytes: Buffer | undefined;
  /** What was looked through for the end of a head. */
  #searchedBytes = 0;

  constructor(limits: Http1Limits) {
    this.#limits = limits;
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
    this.#bytes = this.#bytes ? Buffer.concat([this.#bytes, more]) : more;
  }

  /** Gives away what is here. */
  rest(): Buffer | undefined {
    const bytes = this.#bytes;
    this.clear();
    return bytes;
  }

  clear(): void {
    this.#bytes = undefined;
    this.#searchedBytes = 0;
  }

  /** The next request, with what is here of its body; undefined while its head is not complete. Throws a HeadError. */
  take(): TakenRequest | undefined {
    const bytes = this.#bytes;
    if (!bytes) return undefined;
    // An empty line before a request is forgiven, as RFC 9112, 2.2 asks for.
    const start = bytes[0] === carriageReturn && bytes[1] === lineFeed ? 2 : 0;
    const end = findHeadEnd(bytes, start, this.#searchedBytes, this.#limits);
    if (end < 0) {
      this.#searchedBytes = bytes.length;
      // What it was cut from may be many times as long, and is not to be held until the head ends.
      if (bytes.buffer.byteLength > Math.max(2 * bytes.length, this.#limits.windowBytes)) {
        this.#bytes = Buffer.allocUnsafeSlow(bytes.length);
        bytes.copy(this.#bytes);
      }
      return undefined;
    }
    this.#searchedBytes = 0;
    const head = parseRequestHead(bytes.toString("latin1", start, end));
    const framing = requestFraming(head);
    const expectsContinue = readExpectation(head);
    const bodyStart = end + emptyLine.length;
    let body: Uint8Array | ConnectionBody | undefined;
    let bodyEnd = bodyStart;
    if (framing.kind === "length" && bytes.length - bodyStart >= framing.length) {
      bodyEnd = bodyStart + framing.length;
      body = bytes.subarray(bodyStart, bodyEnd);
    } else if (framing.kind !== "none") {
      const length = framing.kind === "length" ? framing.length : undefined;
      body = new ConnectionBody(length, this.#limits.windowBytes);
      if (bodyStart < bytes.length) bodyEnd = body.push(bytes, bodyStart);
    }
    this.#bytes = bodyEnd < bytes.length ? bytes.subarray(bodyEnd) : undefined;
    return { head, body, keepsAlive: keepsAlive(head), expectsContinue };
  }
}

const emptyLine = Buffer.from("\r\n\r\n");
const carriageReturn = 0x0d;
const lineFeed = 0x0a;

/**
 * Offset of the empty line that ends the head which begins at `start`, or -1 while it is not here. `searched` is how
 * many bytes were looked through before. Throws a HeadError where the head is too long, or can become none.
 */
function findHeadEnd(bytes: Buffer, start: number, searched: number, limits: Http1Limits): number {
  const end = bytes.indexOf(emptyLine, Math.max(start, searched - (emptyLine.length - 1)));
  const length = (end < 0 ? bytes.length : end + emptyLine.length) - start;
  if (length > limits.requestLineBytes) checkLength(bytes, start, length, limits);
  if (end < 0) checkPartial(bytes, start, searched);
  return end;
}

function checkLength(bytes: Buffer, start: number, length: number, limits: Http1Limits): void {
  const line = bytes.indexOf("\r\n", start);
  if (line < 0 || line - start > limits.requestLineBytes) {
    throw new HeadError(414, `The request line must be at most ${limits.requestLineBytes} bytes.`);
  }
  if (length > limits.headBytes) {
    throw new HeadError(431, `The head of a request must be at most ${limits.headBytes} bytes.`);
  }
}

/** A TLS hello, or lines that end in LF alone, would else be waited for until the deadline. */
function checkPartial(bytes: Buffer, start: number, searched: number): void {
  const first = bytes[start];
  const begun = first !== undefined && !(start === 0 && first === carriageReturn && bytes.length === 1);
  if (begun && !isLetter(first)) throw new HeadError(400, "A request must begin with its method, such as GET.");
  for (let at = bytes.indexOf(lineFeed, Math.max(start, searched)); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at - 1] !== carriageReturn) throw new HeadError(400, "The lines of a head must end in CRLF.");
  }
}

function isLetter(byte: number): boolean {
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** Whether the client waits for leave to send its body. Throws a HeadError (417). */
function readExpectation(head: RequestHead): boolean {
  const expectation = head.headers.get("expect");
  // HTTP/1.0 knows none, and its clients wait for nothing (RFC 9110, 10.1.1).
  if (expectation === null || head.version === "1.0") return false;
  if (expectation.toLowerCase() === "100-continue") return true;
  throw new HeadError(417, "The only expectation that is met here is 100-continue.");
}
