// Recognises chunks of a stream that differ from an earlier one in their text alone, so that they need no parsing.
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { SseReader } from "../../base/text/sse.ts";
import type { PlacedEvent, StreamObservation } from "../answer.ts";
import { backslash, type Escapes, firstNonAscii, firstPrintable, quote, stringEnd } from "./json-string.ts";

/** All but the text of a chunk, as byte text: what an event begins and ends with, line ends included. */
export interface ChunkFrame {
  before: string;
  after: string;
}

export class ChunkTemplate implements PlacedEvent {
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
    if (!text.startsWith(before, position)) return "";
    const escapes: Escapes = { bytes: 0 };
    let changed = "";
    let deliveredBytes = 0;
    let deliveredPieces = 0;
    while (text.startsWith(before, position)) {
      const bodyStart = position + before.length;
      escapes.bytes = 0;
      const bodyEnd = stringEnd(text, bodyStart, escapes);
      if (bodyEnd < 0 || (escapes.bytes > 0 && !this.#keepsEscapes) || !text.startsWith(after, bodyEnd)) break;
      position = bodyEnd + after.length;
      const bytes = bodyEnd - bodyStart - escapes.bytes + this.#otherBytes;
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
