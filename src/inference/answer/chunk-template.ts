// Recognises chunks of a stream that differ from an earlier one in their text alone, so that they need no parsing.
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { SseReader } from "../../base/text/sse.ts";
import type { StreamObservation } from "./stream-observation.ts";

/** All but the text of a chunk, as byte text: what an event begins and ends with, line ends included. */
export interface ChunkFrame {
  before: string;
  after: string;
}

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;
const firstNonAscii = 0x80;

export class ChunkTemplate {
  // Apart, and not in their frames: with many streams each object that a chunk leads to has left the processor's cache.
  readonly #before: string;
  readonly #after: string;
  readonly #sentBefore: string;
  readonly #sentAfter: string;
  readonly #isSame: boolean;
  readonly #keepsEscapes: boolean;
  readonly #otherBytes: number;
  /** What the event begins with and ends with, one behind the other. */
  readonly #frame: Buffer;

  /**
   * `keepsEscapes`: whether the text goes to the client as it was written, and not as JSON.stringify writes it.
   * `otherBytes`: UTF-8 bytes that each such chunk delivers beside its text.
   */
  constructor(received: ChunkFrame, sent: ChunkFrame, { keepsEscapes = true, otherBytes = 0 } = {}) {
    this.#before = received.before;
    this.#after = received.after;
    this.#sentBefore = sent.before;
    this.#sentAfter = sent.after;
    this.#isSame = received.before === sent.before && received.after === sent.after;
    this.#keepsEscapes = keepsEscapes;
    this.#otherBytes = otherBytes;
    const { length } = received.before;
    this.#frame = Buffer.allocUnsafeSlow(length + received.after.length);
    this.#frame.write(received.before, 0, "latin1");
    this.#frame.write(received.after, length, "latin1");
  }

  /**
   * Counts the event that is `bytes` from `start` to `end`, if it is one of this kind and plain ASCII; it is to be sent then.
   * One that it does not take may still be one for `take`.
   */
  takeInPlace(bytes: Buffer, start: number, end: number, observed: StreamObservation): boolean {
    const frame = this.#frame;
    const textStart = start + this.#before.length;
    const textEnd = end - this.#after.length;
    if (textEnd < textStart) return false;
    if (bytes.compare(frame, 0, textStart - start, start, textStart) !== 0) return false;
    if (bytes.compare(frame, textStart - start, frame.length, textEnd, end) !== 0) return false;
    for (let at = textStart; at < textEnd; at++) {
      const code = bytes[at] as number;
      if (code < firstPrintable || code >= firstNonAscii || code === quote || code === backslash) return false;
    }
    const length = textEnd - textStart + this.#otherBytes;
    observed.deliveredBytes += length;
    if (length > 0) observed.deliveredPieces++;
    return true;
  }

  /** Sends what the client gets of an event that was taken in place; see `ClientStream.write` for what it returns. */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean {
    if (this.#isSame) return client.writeAround("", bytes, start, end, "");
    const textStart = start + this.#before.length;
    const textEnd = end - this.#after.length;
    return client.writeAround(this.#sentBefore, bytes, textStart, textEnd, this.#sentAfter);
  }

  /** Takes the events of this kind that are next, and counts them. Gives what the client gets of them. */
  take(reader: SseReader, observed: StreamObservation): string {
    const { text } = reader;
    const before = this.#before;
    const after = this.#after;
    const start = reader.position;
    let position = start;
    let changed = "";
    let deliveredBytes = 0;
    let deliveredPieces = 0;
    while (text.startsWith(before, position)) {
      const bodyStart = position + before.length;
      const bodyEnd = stringEnd(text, bodyStart);
      if (bodyEnd < 0 || (escaped > 0 && !this.#keepsEscapes) || !text.startsWith(after, bodyEnd)) break;
      position = bodyEnd + after.length;
      const bytes = bodyEnd - bodyStart - escaped + this.#otherBytes;
      deliveredBytes += bytes;
      if (bytes > 0) deliveredPieces++;
      if (!this.#isSame) changed = `${changed}${this.#sentBefore}${text.slice(bodyStart, bodyEnd)}${this.#sentAfter}`;
    }
    if (position === start) return "";
    observed.deliveredBytes += deliveredBytes;
    observed.deliveredPieces += deliveredPieces;
    reader.position = position;
    return this.#isSame ? text.slice(start, position) : changed;
  }
}

/** Bytes that the escapes of the string last measured by `stringEnd` add to the UTF-8 of what they mean. */
let escaped = 0;

/**
 * Offset of the closing quote of the JSON string whose first byte is at `start`; -1 where it has no end, control
 * characters, bytes that are no UTF-8, or escapes that are none.
 */
export function stringEnd(text: string, start: number): number {
  escaped = 0;
  let i = start;
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (code === quote) return i;
    if (code < firstPrintable) return -1;
    if (code === backslash) {
      const length = escapeLength(text, i);
      if (length === 0) return -1;
      i += length;
    } else if (code < firstNonAscii) {
      i++;
    } else {
      const length = sequenceLength(text, i, code);
      if (length === 0) return -1;
      i += length;
    }
  }
  return -1;
}

/** Length of the UTF-8 sequence at `i` that `first` begins (Unicode, table 3-7); 0 where it is none. */
function sequenceLength(text: string, i: number, first: number): number {
  const second = text.charCodeAt(i + 1);
  if (first < 0xc2 || first > 0xf4) return 0;
  if (first < 0xe0) return isContinuation(second) ? 2 : 0;
  const lowest = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const highest = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (!(second >= lowest && second <= highest) || !isContinuation(text.charCodeAt(i + 2))) return 0;
  if (first < 0xf0) return 3;
  return isContinuation(text.charCodeAt(i + 3)) ? 4 : 0;
}

function isContinuation(code: number): boolean {
  return code >= 0x80 && code <= 0xbf;
}

/** Length of the escape at `i`, a pair of surrogates as one; 0 where it is none. Adds to `escaped`. */
function escapeLength(text: string, i: number): number {
  const kind = text.charCodeAt(i + 1);
  if (kind !== 0x75) {
    if (!simpleEscapes.has(kind)) return 0;
    escaped += 1;
    return 2;
  }
  const unit = hexUnit(text, i + 2);
  if (unit < 0) return 0;
  if (unit >= 0xd800 && unit < 0xdc00 && text.charCodeAt(i + 6) === backslash && text.charCodeAt(i + 7) === 0x75) {
    const low = hexUnit(text, i + 8);
    if (low >= 0xdc00 && low < 0xe000) {
      escaped += 12 - 4;
      return 12;
    }
  }
  // Half of a pair counts as the U+FFFD that it becomes.
  escaped += 6 - (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);
  return 6;
}

/** `"`, `\`, `/`, b, f, n, r, t (RFC 8259, 7). */
const simpleEscapes: ReadonlySet<number> = new Set([0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74]);

/** The four hexadecimal digits at `i`; -1 where they are none. */
function hexUnit(text: string, i: number): number {
  let unit = 0;
  for (let at = i; at < i + 4; at++) {
    const digit = hexDigit(text.charCodeAt(at));
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}
