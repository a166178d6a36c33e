// Parses Server-Sent Events incrementally, however the network splits the stream.
import { ByteSpan } from "../bytes/byte-span.ts";
import { byteTextOf, decodeByteText, detachedByteText } from "../bytes/byte-text.ts";
import { LongText } from "../bytes/long-text.ts";

/**
 * Maximum bytes of an event. No token comes near this size, so a longer event is an attack or a fault. Callers can
 * raise the limit with the constructor's `itemBytes`.
 */
const defaultMaxEventLength = 8 * 1024 * 1024;
/**
 * Maximum lines of an event. An event with more lines is an attack or a fault: even indented JSON has fewer, and each
 * line costs more than its bytes.
 */
const maxDataLines = 64 * 1024;
/** Offset that stands for "not found": greater than the length of any text. */
const nowhere = 0x7fffffff;
const byteOrderMark = "\xef\xbb\xbf";
const colon = 0x3a;
const letterE = 0x65;
/** Length of the longest event name that callers compare `name` with. */
const maxNameLength = 12;
const blank = 0x20;
const [lineFeed, carriageReturn] = [0x0a, 0x0d];

export class SseError extends Error {
  override readonly name = "SseError";
}

/**
 * Incremental reader of `text/event-stream` (WHATWG HTML, 9.2.6). The input is byte text: one character for each byte.
 * LF, CRLF or CR ends a line, several `data` lines are joined with LF, and comments and other fields are dropped. Feed
 * the reader, then call `next` until it returns undefined. The cost grows linearly with the input, however it is cut.
 */
export class SseReader {
  /**
   * The current input. The unread part begins at `position`, at the start of a line. A caller that recognises the next
   * bytes may move `position` past them.
   */
  text = "";
  position = 0;
  /** The beginning of an incomplete line, as the pieces that arrived. They are joined once, at the end of the line. */
  #pieces: LongText | undefined;
  /** The data of the current event, as far as it is in `text`. */
  #data: string | undefined;
  /**
   * The data of the current event from earlier inputs. It is copied, because a slice would keep the whole earlier input
   * in memory.
   */
  #earlier: string[] | undefined;
  #earlierLength = 0;
  #dataLines = 0;
  /**
   * Offsets of the first CR and the first LF that the last search found, or `nowhere` if it found none. Each is
   * searched again once it is before `position`.
   */
  #cr = -1;
  #lf = -1;
  #begun = false;
  /** The name of the current event. */
  #name = "";
  /**
   * The name of the event that `next` or `end` returned last. Empty if the event has no name or a name longer than 12
   * characters.
   */
  name = "";
  readonly #maxEventLength: number;

  /**
   * `itemBytes` is the expected maximum length of an item in one event. Set it only for items above the default limit.
   */
  constructor(itemBytes = 0) {
    this.#maxEventLength = Math.max(defaultMaxEventLength, itemBytes);
  }

  /** True if no part of an incomplete event has been read. */
  get betweenEvents(): boolean {
    return this.#data === undefined && this.#earlier === undefined && this.#name === "";
  }

  /** True if every event of the input has been returned and no bytes remain. */
  get atRest(): boolean {
    return this.betweenEvents && this.#pieces === undefined && this.position === this.text.length;
  }

  /** Number of buffered bytes of the incomplete event. */
  get bufferedBytes(): number {
    return (this.#pieces?.length ?? 0) + this.#earlierLength + (this.#data?.length ?? 0);
  }

  /**
   * Adds input. Call this only after `next` has returned all complete events. Throws SseError if an event exceeds the
   * limit.
   */
  feed(bytes: string): void {
    // The limit is checked before more input is added: `next` has returned all complete events, so all buffered bytes
    // are of one event.
    if (this.bufferedBytes > this.#maxEventLength) {
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

  /** Returns the data of the next complete event. Throws SseError for an event with more than 65,536 lines. */
  next(): string | undefined {
    return this.#take(false);
  }

  /**
   * Returns the event that the end of the stream completes. A last event without its blank line counts, because some
   * servers omit the line.
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
        // An empty line that ends no event is skipped. Each byte of a CRLF counts as such a line here.
        this.position++;
        this.#begun = true;
        continue;
      }
      const start = this.position;
      // Most servers send no CR, so `#cr` is searched once and not for each line.
      if (this.#lf < start) this.#lf = found(text.indexOf("\n", start));
      if (this.#cr < start) this.#cr = found(text.indexOf("\r", start));
      const end = Math.min(this.#lf, this.#cr, text.length);
      // A CR at the end of the text may be the first half of a CRLF.
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

  /** Stores a copy of the unread input, so that the whole input can be freed. */
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

  /**
   * Returns the data of the current event, which ends here. Undefined if the data is empty, because such an event is
   * not dispatched.
   */
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

  /** Event names of model servers are long and frequent, so they are compared within the text and not cut out. */
  #nameLine(start: number, end: number): void {
    const { text } = this;
    if (!text.startsWith("event:", start)) return;
    const nameStart = text.charCodeAt(start + 6) === blank ? start + 7 : start + 6;
    this.#name = end - nameStart > maxNameLength ? "" : detachedByteText(text.slice(nameStart, end));
  }
}

/** Parses `text/event-stream` in UTF-8 bytes, for streams with few events. */
export class SseParser {
  readonly #reader = new SseReader();

  /** Returns the events that `bytes` completes. Throws SseError for an event longer than 8 MiB. */
  push(bytes: Uint8Array): string[] {
    this.#reader.feed(byteTextOf(ByteSpan.of(bytes)));
    const events: string[] = [];
    for (let data = this.#reader.next(); data !== undefined; data = this.#reader.next()) {
      events.push(decodeByteText(data));
    }
    return events;
  }

  /** Returns the events that the end of the stream completes. */
  end(): string[] {
    const data = this.#reader.end();
    return data === undefined ? [] : [decodeByteText(data)];
  }
}

function isLineEnd(code: number): boolean {
  return code === lineFeed || code === carriageReturn;
}

/** Converts the result of `indexOf` for comparisons: `nowhere` if nothing was found. */
function found(index: number): number {
  return index < 0 ? nowhere : index;
}
