// Forwards chunks of a stream that differ from an earlier chunk only in their text. Such chunks reach the client in the
// same form as the earlier one.
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import { type Escapes, stringEnd } from "../../../base/text/json-string.ts";
import type { SseReader } from "../../../base/text/sse.ts";
import { AlikeEvents, type EventFrame, meaningOf } from "../alike-events.ts";
import type { SaidListener, StreamObservation } from "../answer.ts";

export class ChunkTemplate extends AlikeEvents {
  readonly #sentBefore: string;
  readonly #sentAfter: string;
  readonly #isSame: boolean;
  readonly #keepsEscapes: boolean;
  readonly #otherBytes: number;

  /**
   * If `keepsEscapes` is true, the text is sent as it was received, and not rewritten as JSON.stringify would do.
   * `otherBytes` is the number of UTF-8 bytes that each such chunk delivers besides its text.
   */
  constructor(received: EventFrame, sent: EventFrame, { keepsEscapes = true, otherBytes = 0 } = {}) {
    super(received);
    this.#sentBefore = sent.before;
    this.#sentAfter = sent.after;
    this.#isSame = received.before === sent.before && received.after === sent.after;
    this.#keepsEscapes = keepsEscapes;
    this.#otherBytes = otherBytes;
  }

  /**
   * Counts the event in `bytes` from `start` to `end` if it fits the template and is plain ASCII. If the event was
   * counted, the caller must send it. If not, it may still fit `take`.
   */
  takeInPlace(bytes: Buffer, start: number, end: number, observed: StreamObservation): boolean {
    if (!this.isPlain(bytes, start, end)) return false;
    const length = end - start - this.before.length - this.after.length + this.#otherBytes;
    observed.deliveredBytes += length;
    if (length > 0) observed.deliveredPieces++;
    return true;
  }

  /** Sends an event that was taken in place, in the client's form. Returns the result of `ClientStream.write`. */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean {
    if (this.#isSame) return client.writeAround("", bytes, start, end, "");
    const textStart = start + this.before.length;
    const textEnd = end - this.after.length;
    return client.writeAround(this.#sentBefore, bytes, textStart, textEnd, this.#sentAfter);
  }

  /**
   * Takes and counts the next events that fit the template, and returns them in the client's form. `said` receives
   * their text.
   */
  take(reader: SseReader, observed: StreamObservation, said?: SaidListener): string {
    const { text } = reader;
    const before = this.before;
    const after = this.after;
    const start = reader.position;
    let position = start;
    if (!text.startsWith(before, position)) return "";
    const escapes: Escapes = { bytes: 0 };
    let changed = "";
    let passed = "";
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
      if (said) passed += text.slice(bodyStart, bodyEnd);
      if (!this.#isSame) changed = `${changed}${this.#sentBefore}${text.slice(bodyStart, bodyEnd)}${this.#sentAfter}`;
    }
    if (position === start) return "";
    observed.deliveredBytes += deliveredBytes;
    observed.deliveredPieces += deliveredPieces;
    reader.position = position;
    said?.text(meaningOf(passed));
    return this.#isSame ? text.slice(start, position) : changed;
  }
}
