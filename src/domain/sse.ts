// Server-Sent Events as they arrive, whatever the cuts between network reads.
import { ByteSpan } from "./byte-span.ts";
import { byteTextOf, decodeByteText, detachedByteText } from "./byte-text.ts";

/** One longer event is an attack or a fault: no token, and no image that a model draws, comes near it. */
const maxEventLength = 8 * 1024 * 1024;
const byteOrderMark = "\xef\xbb\xbf";
const colon = 0x3a;
const blank = 0x20;

export class SseError extends Error {
  override readonly name = "SseError";
}

/**
 * Incremental reader of `text/event-stream` (WHATWG HTML, 9.2.6) as byte text: any of LF, CRLF, CR ends a line, several
 * `data` lines join with LF, comments and other fields are dropped. Feed it, then take events until there is none.
 */
export class SseReader {
  /** What was fed and is not read yet begins at `position`, at the start of a line. Whoever knows what stands there may skip it. */
  text = "";
  position = 0;
  /** The beginning of a line, in the pieces in which it came: joined once, when its end is there. */
  #pieces: string[] | undefined;
  #piecesLength = 0;
  #data: string | undefined;
  #hasCr: boolean | undefined;
  #begun = false;

  /** Whether nothing of an event was read yet that is not complete. */
  get betweenEvents(): boolean {
    return this.#data === undefined;
  }

  /** Whether all that was fed was given out. */
  get atRest(): boolean {
    return this.betweenEvents && this.#pieces === undefined && this.position === this.text.length;
  }

  /** Everything fed before must have been read. Throws SseError on an event beyond 8 MiB. */
  feed(bytes: string): void {
    // Asked before more is read, so that events complete so far were given out.
    if (this.#piecesLength + (this.#data?.length ?? 0) > maxEventLength) {
      throw new SseError(`an event is longer than ${maxEventLength} bytes`);
    }
    this.#hasCr = undefined;
    this.position = 0;
    const pieces = this.#pieces;
    if (!pieces) {
      this.text = bytes;
      return;
    }
    const afterCr = pieces[pieces.length - 1]?.endsWith("\r") === true;
    pieces.push(bytes);
    this.#piecesLength += bytes.length;
    if (!afterCr && !bytes.includes("\n") && !bytes.includes("\r")) return;
    this.text = pieces.join("");
    this.#pieces = undefined;
    this.#piecesLength = 0;
  }

  /** The data of the next event that is complete. */
  next(): string | undefined {
    return this.#take(false);
  }

  /** What the end of the stream completes: a last event without its blank line counts, for servers that forget it. */
  end(): string | undefined {
    if (this.#pieces) this.text = this.#pieces.join("");
    this.#pieces = undefined;
    this.#piecesLength = 0;
    const data = this.#take(true) ?? this.#data;
    this.#data = undefined;
    return data;
  }

  #take(last: boolean): string | undefined {
    const { text } = this;
    if (this.position === text.length) {
      this.text = "";
      this.position = 0;
      return undefined;
    }
    // Most servers send no CR at all: then no line needs a search for one.
    this.#hasCr ??= text.includes("\r");
    while (this.position < text.length) {
      const start = this.position;
      const lf = text.indexOf("\n", start);
      const { end, next } = this.#hasCr
        ? lineEnd(text, start, lf, last)
        : lf < 0
          ? openLine(text, last)
          : { end: lf, next: lf + 1 };
      if (next < 0) break;
      this.position = next;
      if (end > start) {
        this.#line(start, end);
        continue;
      }
      this.#begun = true;
      const data = this.#data;
      this.#data = undefined;
      if (data !== undefined) return data;
    }
    if (this.position < text.length) {
      this.#piecesLength = text.length - this.position;
      this.#pieces = [this.position === 0 ? text : detachedByteText(text.slice(this.position))];
    }
    this.text = "";
    this.position = 0;
    return undefined;
  }

  #line(lineStart: number, end: number): void {
    const { text } = this;
    let start = lineStart;
    if (!this.#begun) {
      this.#begun = true;
      if (text.startsWith(byteOrderMark, start)) start += byteOrderMark.length;
    }
    if (!text.startsWith("data", start)) return;
    const nameEnd = start + 4;
    let value = "";
    if (end > nameEnd) {
      if (text.charCodeAt(nameEnd) !== colon) return;
      value = text.slice(text.charCodeAt(nameEnd + 1) === blank ? nameEnd + 2 : nameEnd + 1, end);
    }
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }
}

/** The same over UTF-8, for streams of few events. */
export class SseParser {
  readonly #reader = new SseReader();

  /** The events that `bytes` completes. Throws SseError on an event beyond 8 MiB. */
  push(bytes: Uint8Array): string[] {
    this.#reader.feed(byteTextOf(ByteSpan.of(bytes)));
    const events: string[] = [];
    for (let data = this.#reader.next(); data !== undefined; data = this.#reader.next()) {
      events.push(decodeByteText(data));
    }
    return events;
  }

  /** What the end of the stream completes. */
  end(): string[] {
    const data = this.#reader.end();
    return data === undefined ? [] : [decodeByteText(data)];
  }
}

/**
 * Where the line that begins at `start` ends, and where the next begins: -1 while that is not known. `lf` is the first
 * LF, or -1.
 */
function lineEnd(text: string, start: number, lf: number, last: boolean): { end: number; next: number } {
  const cr = text.indexOf("\r", start);
  if (cr >= 0 && (lf < 0 || cr < lf)) {
    if (lf === cr + 1) return { end: cr, next: lf + 1 };
    // A CR at the very end may be half of a CRLF.
    if (cr === text.length - 1 && !last) return { end: cr, next: -1 };
    return { end: cr, next: cr + 1 };
  }
  return lf >= 0 ? { end: lf, next: lf + 1 } : openLine(text, last);
}

function openLine(text: string, last: boolean): { end: number; next: number } {
  return { end: text.length, next: last ? text.length : -1 };
}
