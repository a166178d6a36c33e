// Server-Sent Events as they arrive, whatever the cuts between network reads.

/** One longer event is an attack or a fault: no token, and no image that a model draws, comes near it. */
const maxEventLength = 8 * 1024 * 1024;
const lineEnds = /[\r\n]/;

export class SseError extends Error {
  override readonly name = "SseError";
}

/**
 * Incremental parser of `text/event-stream` (WHATWG HTML, 9.2.6): any of LF, CRLF, CR ends a line, several `data` lines
 * join with LF, comments and other fields are dropped. Gives the data of each event.
 */
export class SseParser {
  readonly #decoder = new TextDecoder();
  /** The beginning of a line, in the pieces in which it came: joined once, when its end is there. */
  #pieces: string[] = [];
  #piecesLength = 0;
  #data: string | undefined;
  #dataLength = 0;

  /** The events that `bytes` completes. Throws SseError on an event beyond 8 MiB. */
  push(bytes: Uint8Array): string[] {
    return this.#take(this.#decoder.decode(bytes, { stream: true }), false);
  }

  /** What the end of the stream completes: a last event without its blank line counts, for servers that forget it. */
  end(): string[] {
    const events = this.#take(this.#decoder.decode(), true);
    if (this.#data !== undefined) events.push(this.#data);
    this.#data = undefined;
    return events;
  }

  #take(text: string, last: boolean): string[] {
    // Asked before more is read, so that events complete so far were given out.
    if (this.#piecesLength + this.#dataLength > maxEventLength) {
      throw new SseError(`an event is longer than ${maxEventLength} characters`);
    }
    const events: string[] = [];
    this.#pieces.push(text);
    this.#piecesLength += text.length;
    if (!last && !lineEnds.test(text) && !this.#pieces.at(-2)?.endsWith("\r")) return events;
    const buffer = this.#pieces.join("");
    // Most servers send no CR at all: then no line needs a search for one.
    const hasCr = buffer.includes("\r");
    let start = 0;
    while (start < buffer.length) {
      const { end, next } = lineEnd(buffer, start, hasCr, last);
      if (next < 0) break;
      this.#line(buffer.slice(start, end), events);
      start = next;
    }
    this.#pieces = start < buffer.length ? [buffer.slice(start)] : [];
    this.#piecesLength = buffer.length - start;
    return events;
  }

  #line(line: string, events: string[]): void {
    if (line === "") {
      if (this.#data !== undefined) events.push(this.#data);
      this.#data = undefined;
      this.#dataLength = 0;
    } else if (line.startsWith("data:")) {
      const value = line.slice(line.charCodeAt(5) === 0x20 ? 6 : 5);
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
      this.#dataLength = this.#data.length;
    } else if (line === "data") {
      this.#data = this.#data === undefined ? "" : `${this.#data}\n`;
      this.#dataLength = this.#data.length;
    }
  }
}

/** The end of the line that starts at `start`, and the start of the next; `next` is -1 while the line is incomplete. */
function lineEnd(text: string, start: number, hasCr: boolean, last: boolean): { end: number; next: number } {
  const lf = text.indexOf("\n", start);
  const cr = hasCr ? text.indexOf("\r", start) : -1;
  if (cr >= 0 && (lf < 0 || cr < lf)) {
    if (lf === cr + 1) return { end: cr, next: lf + 1 };
    // A CR at the very end may be half of a CRLF.
    if (cr === text.length - 1 && !last) return { end: cr, next: -1 };
    return { end: cr, next: cr + 1 };
  }
  if (lf >= 0) return { end: lf, next: lf + 1 };
  return last ? { end: text.length, next: text.length } : { end: text.length, next: -1 };
}
