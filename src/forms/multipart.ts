// Reads a form as it comes (RFC 7578): where its parts begin and end, strictly, as whoever it is sent on to reads it once more.
import { invalidRequest } from "../base/errors.ts";
import { type PartHead, readPartHead } from "./part-head.ts";

/** Told of the parts in their order; offsets are counted from the beginning of the form. */
export interface PartTaker {
  /** A part begins; its content at `at`. May throw. */
  part(head: PartHead, at: number): void;
  /** Some of its content, in `bytes` from `start` to `end`, lent until this returns. May throw. */
  content(bytes: Buffer, start: number, end: number): void;
  partEnd(at: number): void;
}

/** Bytes of the head of one part; names and types of files take some hundred. */
export const mostHeadBytes = 8 * 1024;
/** Bytes between a boundary and the end of its line. */
const mostLineBytes = 256;
const [carriageReturn, lineFeed, dash, blank, tab] = [0x0d, 0x0a, 0x2d, 0x20, 0x09];
const endOfHead = "\r\n\r\n";
const roomOfHead = mostHeadBytes + endOfHead.length;

type State =
  /** In the content of a part, or, at first, before the boundary that everything begins with. */
  | "content"
  /** Behind a boundary, up to the end of its line. */
  | "line"
  | "head"
  /** Behind the last boundary. */
  | "over";

export class MultipartReader {
  readonly #taker: PartTaker;
  /** The line end before a boundary belongs to it; the first has none. */
  readonly #delimiter: Buffer;
  #state: State = "content";
  #isFirst = true;
  /** Bytes of the delimiter that were the last to be seen. */
  #matched = 2;
  /** What came of a line. */
  #gathered = "";
  /** What came of a head, in room that is used again for the next. */
  #headRoom: Buffer | undefined;
  #headBytes = 0;
  /** Offset of what is given to `push` next. */
  #at = 0;

  constructor(boundary: string, taker: PartTaker) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
    this.#taker = taker;
  }

  /** Throws `invalid_request`, and what the taker throws. */
  push(bytes: Buffer): void {
    let i = 0;
    while (i < bytes.length) {
      if (this.#state === "content") i = this.#content(bytes, i);
      else if (this.#state === "line") i = this.#line(bytes, i);
      else if (this.#state === "head") i = this.#head(bytes, i);
      else i = afterLast(bytes, i);
    }
    this.#at += bytes.length;
  }

  /** All of it was given. Throws `invalid_request` where that is not all of a form. */
  end(): void {
    if (this.#state === "line" && this.#gathered === "--") return;
    if (this.#state === "over") return;
    if (this.#isFirst) throw this.#notBegun();
    throw invalidRequest("The form ends before its last boundary: send all of it, with --boundary-- at its end.");
  }

  #content(bytes: Buffer, from: number): number {
    const delimiter = this.#delimiter;
    let i = from;
    while (this.#matched > 0 && i < bytes.length) {
      if (bytes[i] !== delimiter[this.#matched]) {
        if (this.#isFirst) throw this.#notBegun();
        // No other prefix of it can be in what was held back: its first byte is nowhere else in it.
        this.#taker.content(delimiter, 0, this.#matched);
        this.#matched = 0;
      } else if (++this.#matched === delimiter.length) return this.#foundAt(i + 1);
      else i++;
    }
    if (i === bytes.length) return i;
    const found = bytes.indexOf(delimiter, i);
    if (found >= 0) {
      if (found > i) this.#taker.content(bytes, i, found);
      return this.#foundAt(found + delimiter.length);
    }
    const kept = this.#startOfDelimiter(bytes, i);
    this.#matched = bytes.length - kept;
    if (kept > i) this.#taker.content(bytes, i, kept);
    return bytes.length;
  }

  /** Where the delimiter may begin that goes on in the next piece. */
  #startOfDelimiter(bytes: Buffer, from: number): number {
    const delimiter = this.#delimiter;
    const last = bytes.lastIndexOf(carriageReturn);
    if (last < Math.max(from, bytes.length - delimiter.length + 1)) return bytes.length;
    const length = bytes.length - last;
    return bytes.compare(delimiter, 0, length, last, bytes.length) === 0 ? last : bytes.length;
  }

  #foundAt(next: number): number {
    this.#matched = 0;
    if (!this.#isFirst) this.#taker.partEnd(this.#at + next - this.#delimiter.length);
    this.#isFirst = false;
    this.#gathered = "";
    this.#state = "line";
    return next;
  }

  /** Blanks may stand behind a boundary; two dashes say that it is the last. */
  #line(bytes: Buffer, from: number): number {
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
      if (this.#gathered.length > mostLineBytes) throw moreThanBoundary();
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
      throw invalidRequest(`The headers of a part of the form are longer than ${mostHeadBytes} bytes.`);
    }
    const next = from + end + endOfHead.length - before;
    // Names of files are UTF-8, whatever else they may be.
    const head = readPartHead(read.toString("utf8", 0, end));
    this.#headBytes = 0;
    this.#state = "content";
    this.#taker.part(head, this.#at + next);
    return next;
  }

  #notBegun() {
    return invalidRequest(
      "The body does not begin with the boundary that the header Content-Type names. Let your HTTP client set that header.",
    );
  }
}

function moreThanBoundary() {
  return invalidRequest(
    "The form has more behind a boundary than the end of the line: its boundary is in what it has to keep apart.",
  );
}

/** Nothing of use is there, but some clients end the line, or two. */
function afterLast(bytes: Buffer, from: number): number {
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === carriageReturn || byte === lineFeed || byte === blank || byte === tab || byte === dash) continue;
    throw invalidRequest("The form goes on behind its last boundary.");
  }
  return bytes.length;
}
