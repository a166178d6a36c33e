// Server-Sent Events as they arrive, whatever the cuts between network reads.
import { ByteSpan } from "../bytes/byte-span.ts";
import { byteTextOf, decodeByteText, detachedByteText } from "../bytes/byte-text.ts";
import { LongText } from "../bytes/long-text.ts";

/** A longer event is an attack or a fault, unless the reader is told of long items: no token comes near it. */
const defaultMaxEventLength = 8 * 1024 * 1024;
/**
 * An event of more lines is an attack or a fault, too: JSON that is written for people to read has fewer, and each line
 * costs more than its bytes.
 */
const maxDataLines = 64 * 1024;
/** Stands for an offset that was not found: behind the end of any text. */
const nowhere = 0x7fffffff;
const byteOrderMark = "\xef\xbb\xbf";
const colon = 0x3a;
const letterE = 0x65;
/** The longest name of an event that readers ask for. */
const maxNameLength = 12;
const blank = 0x20;
const [lineFeed, carriageReturn] = [0x0a, 0x0d];

export class SseError extends Error {
  override readonly name = "SseError";
}

/**
 * Incremental reader of `text/event-stream` (WHATWG HTML, 9.2.6) as byte text: any of LF, CRLF, CR ends a line, several
 * `data` lines join with LF, comments and other fields are dropped. Feed it, then take events until there is none. The cost
 * grows with what is fed and not with its square, whatever that is and however it is cut.
 */
export class SseReader {
  /** What was fed and is not read yet begins at `position`, at the start of a line. Whoever knows what stands there may skip it. */
  text = "";
  position = 0;
  /** The beginning of a line, in the pieces in which it came: joined once, when its end is there. */
  #pieces: LongText | undefined;
  /** The data of the event at hand, as far as it lies in `text`. */
  #data: string | undefined;
  /**
   * The data of the event that came before `text`, in memory of its own: a line that was cut from a longer text keeps
   * all of that in memory.
   */
  #earlier: string[] | undefined;
  #earlierLength = 0;
  #dataLines = 0;
  /** The first CR and the first LF from `position` on, or behind it, as far as they were searched; `nowhere`: there is none. */
  #cr = -1;
  #lf = -1;
  #begun = false;
  /** The name of the event at hand. */
  #name = "";
  /** The name of the event that `next` or `end` returned last; empty where it has none, or more than 12 characters. */
  name = "";
  readonly #maxEventLength: number;

  /** `itemBytes`: the longest item that one event may hold, where that is longer than usual. */
  constructor(itemBytes = 0) {
    this.#maxEventLength = Math.max(defaultMaxEventLength, itemBytes);
  }

  /** Whether nothing of an event was read yet that is not complete. */
  get betweenEvents(): boolean {
    return this.#data === undefined && this.#earlier === undefined && this.#name === "";
  }

  /** Whether all that was fed was given out. */
  get atRest(): boolean {
    return this.betweenEvents && this.#pieces === undefined && this.position === this.text.length;
  }

  /** Bytes of an event that is not complete. */
  get heldBytes(): number {
    return (this.#pieces?.length ?? 0) + this.#earlierLength + (this.#data?.length ?? 0);
  }

  /** Everything fed before must have been read. Throws SseError on an event beyond the bound. */
  feed(bytes: string): void {
    // Asked before more is read, so that events complete so far were given out.
    if (this.heldBytes > this.#maxEventLength) {
      this.#pieces?.drop();
      throw new SseError(`an event is longer than ${this.#maxEventLength} bytes`);
    }
    this.#cr = this.#lf = -1;
    this.position = 0;
    const pieces = this.#pieces;
    if (!pieces) {
      this.text = bytes;
      return;
    }
    const { endsInCr } = pieces;
    pieces.add(bytes);
    if (!endsInCr && !bytes.includes("\n") && !bytes.includes("\r")) return;
    this.text = pieces.take();
    this.#pieces = undefined;
  }

  /** The data of the next event that is complete. Throws SseError on an event of more than 65,536 lines. */
  next(): string | undefined {
    return this.#take(false);
  }

  /**
   * The event that the end of the stream completes: a last event without its blank line counts, for servers that forget
   * it.
   */
  end(): string | undefined {
    if (this.#pieces) {
      this.text = this.#pieces.take();
      this.#cr = this.#lf = -1;
    }
    this.#pieces = undefined;
    return this.#take(true) ?? this.#event();
  }

  #take(last: boolean): string | undefined {
    const { text } = this;
    while (this.position < text.length) {
      if (this.betweenEvents && isLineEnd(text.charCodeAt(this.position))) {
        // An empty line that ends nothing means nothing, be it of one byte or of two.
        this.position++;
        this.#begun = true;
        continue;
      }
      const start = this.position;
      // Most servers send no CR at all: then no line needs a search for one.
      if (this.#lf < start) this.#lf = found(text.indexOf("\n", start));
      if (this.#cr < start) this.#cr = found(text.indexOf("\r", start));
      const end = Math.min(this.#lf, this.#cr, text.length);
      // A CR at the very end may be half of a CRLF.
      if (!last && (end === text.length || (end === this.#cr && end === text.length - 1))) break;
      this.position = Math.min(text.length, this.#lf === this.#cr + 1 ? end + 2 : end + 1);
      if (end > start) {
        this.#line(start, end);
        continue;
      }
      const data = this.#event();
      if (data !== undefined) return data;
    }
    this.#keepRest();
    return undefined;
  }

  /** Keeps what is not read yet without the text that it was cut from. */
  #keepRest(): void {
    const { text } = this;
    if (this.position < text.length) {
      this.#pieces = new LongText(this.position === 0 ? text : detachedByteText(text.slice(this.position)));
    }
    if (this.#data !== undefined) {
      this.#earlier ??= [];
      this.#earlier.push(detachedByteText(this.#data));
      this.#earlierLength += this.#data.length + 1;
      this.#data = undefined;
    }
    this.text = "";
    this.position = 0;
  }

  /** The data of the event at hand, which ends here; undefined where it is empty, as such an event is not dispatched. */
  #event(): string | undefined {
    const data = this.#data;
    const earlier = this.#earlier;
    this.#data = undefined;
    this.#dataLines = 0;
    this.name = this.#name;
    this.#name = "";
    if (!earlier) return data === "" ? undefined : data;
    this.#earlier = undefined;
    this.#earlierLength = 0;
    if (data !== undefined) earlier.push(data);
    return earlier.join("\n") || undefined;
  }

  #line(lineStart: number, end: number): void {
    const { text } = this;
    let start = lineStart;
    if (!this.#begun) {
      this.#begun = true;
      if (text.startsWith(byteOrderMark, start)) start += byteOrderMark.length;
    }
    if (text.charCodeAt(start) === letterE) this.#nameLine(start, end);
    if (!text.startsWith("data", start)) return;
    const nameEnd = start + 4;
    let value = "";
    if (end > nameEnd) {
      if (text.charCodeAt(nameEnd) !== colon) return;
      value = text.slice(text.charCodeAt(nameEnd + 1) === blank ? nameEnd + 2 : nameEnd + 1, end);
    }
    if (++this.#dataLines > maxDataLines) throw new SseError(`an event has more than ${maxDataLines} lines`);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  /** Names of model servers' own events are long and many: those are not cut out of the text. */
  #nameLine(start: number, end: number): void {
    const { text } = this;
    if (!text.startsWith("event:", start)) return;
    const nameStart = text.charCodeAt(start + 6) === blank ? start + 7 : start + 6;
    this.#name = end - nameStart > maxNameLength ? "" : detachedByteText(text.slice(nameStart, end));
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

  /** The events that the end of the stream completes. */
  end(): string[] {
    const data = this.#reader.end();
    return data === undefined ? [] : [decodeByteText(data)];
  }
}

function isLineEnd(code: number): boolean {
  return code === lineFeed || code === carriageReturn;
}

/** The result of `indexOf`, made comparable: `nowhere` where it found nothing. */
function found(index: number): number {
  return index < 0 ? nowhere : index;
}
