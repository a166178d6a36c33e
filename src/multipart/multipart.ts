// Parses a multipart form while it arrives (RFC 7578). The parser is strict, because the model server must not parse
// the form differently.
import { invalidRequest } from "../base/errors.ts";
import { type PartHead, readPartHead } from "./part-head.ts";

/** Receives the parts in order. Offsets count from the beginning of the form. */
export interface PartTaker {
  /** Called at the beginning of a part. Its content starts at offset `at`. May throw. */
  part(head: PartHead, at: number): void;
  /**
   * Called with content of the part, which is `bytes` from `start` to `end`. The bytes are valid only during the call.
   * May throw.
   */
  content(bytes: Buffer, start: number, end: number): void;
  partEnd(at: number): void;
}

/** Maximum bytes of the headers of a part. Usual headers have some hundred bytes. */
export const maxHeadBytes = 8 * 1024;
/** Maximum bytes between a boundary and the end of its line. */
const maxLineBytes = 256;
const [carriageReturn, lineFeed, dash, blank, tab] = [0x0d, 0x0a, 0x2d, 0x20, 0x09];
const endOfHead = "\r\n\r\n";
const roomOfHead = maxHeadBytes + endOfHead.length;
/** The kinds of text directly before a boundary. Parsers differ in which of these they accept. */
const [within, atStart, afterReturn, afterFeed, afterBoth] = [0, 1, 2, 3, 4];
/** For each kind, the line end before the boundary. */
const lineEnds = ["", "", "\r", "\n", "\r\n"] as const;

type State =
  /** In the content of a part, or still before the first boundary. */
  | "content"
  /** After a boundary, in the rest of its line. */
  | "line"
  | "head"
  /** After the last boundary. */
  | "over";

export class MultipartReader {
  readonly #taker: PartTaker;
  readonly #boundary: Buffer;
  /** For each kind of line end, the boundary with that line end before it. */
  readonly #delimiters: readonly Buffer[];
  #state: State = "content";
  #isFirst = true;
  /**
   * The kind of line end, and the number of bytes of the boundary after it, that were found at the end of the last
   * bytes. They may be a boundary, so they are not passed on yet.
   */
  #line = atStart;
  #matched = 0;
  /** The characters between a boundary and the end of its line, as far as they have arrived. */
  #gathered = "";
  /** Reused buffer with the headers of the current part. */
  #headRoom: Buffer | undefined;
  #headBytes = 0;
  /** Offset of the next pushed bytes within the form. */
  #at = 0;

  constructor(boundary: string, taker: PartTaker) {
    this.#boundary = Buffer.from(`--${boundary}`, "latin1");
    this.#delimiters = lineEnds.map((end) => Buffer.from(`${end}--${boundary}`, "latin1"));
    this.#taker = taker;
  }

  /** Parses more bytes. Throws `invalid_request`, or an error that the receiver threw. */
  push(bytes: Buffer): void {
    let i = 0;
    while (i < bytes.length) {
      if (this.#state === "content") i = this.#content(bytes, i);
      else if (this.#state === "line") i = this.#lineEnd(bytes, i);
      else if (this.#state === "head") i = this.#head(bytes, i);
      else i = afterLast(bytes, i);
    }
    this.#at += bytes.length;
  }

  /** Ends the form. Throws `invalid_request` if the form is incomplete. */
  end(): void {
    if (this.#state === "line" && this.#gathered === "--") return;
    if (this.#state === "over") return;
    if (this.#isFirst) throw this.#notBegun();
    throw invalidRequest("The form ends before its last boundary: send all of it, with --boundary-- at its end.");
  }

  #content(bytes: Buffer, from: number): number {
    const boundary = this.#boundary;
    let i = from;
    while (this.#line !== within && i < bytes.length) {
      if (this.#line === afterReturn && this.#matched === 0 && bytes[i] === lineFeed) {
        this.#line = afterBoth;
        i++;
      } else if (this.#isFirst && this.#matched === 0 && this.#line !== afterReturn && bytes[i] === carriageReturn) {
        // An empty line may precede the first boundary (RFC 2046, 5.1.1).
        this.#line = afterReturn;
        i++;
      } else if (bytes[i] === boundary[this.#matched]) {
        i++;
        if (++this.#matched === boundary.length) return this.#foundAt(i);
      } else {
        if (this.#isFirst) throw this.#notBegun();
        // The bytes were held back because they could have been a boundary, but they are content. No boundary can begin
        // within them, because they contain no line end.
        this.#give(this.#delimiters[this.#line] as Buffer, 0, endLength(this.#line), this.#matched);
        this.#line = within;
        this.#matched = 0;
      }
    }
    while (i < bytes.length) {
      const found = bytes.indexOf(boundary, i);
      if (found < 0) return this.#giveRest(bytes, i);
      const line = lineBefore(bytes, i, found);
      if (line !== within) {
        this.#line = line;
        this.#give(bytes, i, found - i - endLength(line), 0);
        return this.#foundAt(found + boundary.length);
      }
      this.#give(bytes, i, found + 1 - i, 0);
      i = found + 1;
    }
    return i;
  }

  /**
   * Passes on the rest of the bytes. A line end and the beginning of a boundary are held back, because the boundary may
   * continue in the next bytes.
   */
  #giveRest(bytes: Buffer, from: number): number {
    const least = Math.max(from, bytes.length - this.#boundary.length);
    let at = bytes.length;
    while (at > least && bytes[at - 1] !== carriageReturn && bytes[at - 1] !== lineFeed) at--;
    const line = lineBefore(bytes, from, at);
    const matched = bytes.length - at;
    if (line === within || this.#boundary.compare(bytes, at, bytes.length, 0, matched) !== 0) {
      this.#give(bytes, from, bytes.length - from, 0);
      return bytes.length;
    }
    this.#line = line;
    this.#matched = matched;
    this.#give(bytes, from, at - from - endLength(line), 0);
    return bytes.length;
  }

  #give(bytes: Buffer, from: number, length: number, more: number): void {
    if (length + more > 0) this.#taker.content(bytes, from, from + length + more);
  }

  #foundAt(next: number): number {
    if (this.#line !== afterBoth && !(this.#isFirst && this.#line === atStart))
      throw this.#isFirst ? this.#notBegun() : boundaryInContent();
    if (!this.#isFirst) this.#taker.partEnd(this.#at + next - this.#boundary.length - endLength(afterBoth));
    this.#isFirst = false;
    this.#line = within;
    this.#matched = 0;
    this.#gathered = "";
    this.#state = "line";
    return next;
  }

  /** Reads the rest of a boundary's line. It has only blanks, or two dashes if the boundary is the last one. */
  #lineEnd(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i++) {
      this.#gathered += String.fromCharCode(bytes[i] as number);
      if (this.#gathered === "--") {
        this.#state = "over";
        return i + 1;
      }
      if (this.#gathered.endsWith("\r\n")) {
        if (!/^[ \t]*\r\n$/.test(this.#gathered)) throw moreThanBoundary();
        this.#state = "head";
        return i + 1;
      }
      if (this.#gathered.length > maxLineBytes) throw moreThanBoundary();
    }
    return bytes.length;
  }

  #head(bytes: Buffer, from: number): number {
    this.#headRoom ??= Buffer.allocUnsafeSlow(roomOfHead);
    const before = this.#headBytes;
    this.#headBytes += bytes.copy(this.#headRoom, before, from);
    const read = this.#headRoom.subarray(0, this.#headBytes);
    const end = read.indexOf(endOfHead, Math.max(0, before - endOfHead.length));
    if (end < 0) {
      if (this.#headBytes < roomOfHead) return bytes.length;
      throw invalidRequest(`The headers of a part of the form are longer than ${maxHeadBytes} bytes.`);
    }
    const next = from + end + endOfHead.length - before;
    // The headers are decoded as UTF-8, because filenames are sent in UTF-8 even if texts have another charset.
    const head = readPartHead(read.toString("utf8", 0, end));
    this.#headBytes = 0;
    this.#state = "content";
    this.#line = atStart;
    this.#taker.part(head, this.#at + next);
    return next;
  }

  #notBegun() {
    return invalidRequest(
      "The body does not begin with the boundary that the header Content-Type names. Let your HTTP client set that header.",
    );
  }
}

function endLength(line: number): number {
  return lineEnds[line]?.length ?? 0;
}

/** Returns the kind of line end directly before `at`. The bytes begin at `from`. */
function lineBefore(bytes: Buffer, from: number, at: number): number {
  const last = at > from ? bytes[at - 1] : undefined;
  if (last === carriageReturn) return afterReturn;
  if (last !== lineFeed) return within;
  return at - 1 > from && bytes[at - 2] === carriageReturn ? afterBoth : afterFeed;
}

/**
 * Returns the error for a boundary in the content that does not follow a CRLF. Go's mime/multipart and Werkzeug begin a
 * new part there.
 */
function boundaryInContent() {
  return invalidRequest(
    "A part of the form has the boundary at the beginning of a line of its content, without CRLF before it: servers differ in whether another part begins there. Let your HTTP client choose the boundary.",
  );
}

function moreThanBoundary() {
  return invalidRequest(
    "The form has more behind a boundary than the end of the line: its boundary is in what it has to keep apart.",
  );
}

/** Skips line ends, blanks and dashes behind the last boundary, which some clients send. Throws for any other byte. */
function afterLast(bytes: Buffer, from: number): number {
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === carriageReturn || byte === lineFeed || byte === blank || byte === tab || byte === dash) continue;
    throw invalidRequest("The form goes on behind its last boundary.");
  }
  return bytes.length;
}
