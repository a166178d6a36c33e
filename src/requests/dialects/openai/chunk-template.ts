// Takes chunks of a stream that differ from an earlier one in their text alone, and sends them on as that one was.
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
   * `keepsEscapes`: whether the text goes to the client as it was written, and not as JSON.stringify writes it.
   * `otherBytes`: UTF-8 bytes that each such chunk delivers beside its text.
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
   * Counts the event that is `bytes` from `start` to `end`, if it is one of this kind and plain ASCII; it is to be sent then.
   * One that it does not take may still be one for `take`.
   */
  takeInPlace(bytes: Buffer, start: number, end: number, observed: StreamObservation): boolean {
    if (!this.isPlain(bytes, start, end)) return false;
    const length = end - start - this.before.length - this.after.length + this.#otherBytes;
    observed.deliveredBytes += length;
    if (length > 0) observed.deliveredPieces++;
    return true;
  }

  /** Sends what the client gets of an event that was taken in place; see `ClientStream.write` for what it returns. */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean {
    if (this.#isSame) return client.writeAround("", bytes, start, end, "");
    const textStart = start + this.before.length;
    const textEnd = end - this.after.length;
    return client.writeAround(this.#sentBefore, bytes, textStart, textEnd, this.#sentAfter);
  }

  /** Takes the events of this kind that are next, and counts them. Gives what the client gets of them; `said` is told their text. */
  take(reader: SseReader, observed: StreamObservation, said?: SaidListener): string {
    const { text } = reader;
    const before = this.before;
    const after = this.after;
    const start = reader.position;
    let position = start;
    if (!text.startsWith(before, position)) return "";
    const escapes: Escapes = { bytes: 0 };
    let changed = "";
    let told = "";
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
      if (said) told += text.slice(bodyStart, bodyEnd);
      if (!this.#isSame) changed = `${changed}${this.#sentBefore}${text.slice(bodyStart, bodyEnd)}${this.#sentAfter}`;
    }
    if (position === start) return "";
    observed.deliveredBytes += deliveredBytes;
    observed.deliveredPieces += deliveredPieces;
    reader.position = position;
    said?.text(meaningOf(told));
    return this.#isSame ? text.slice(start, position) : changed;
  }
}
