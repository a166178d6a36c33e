// Translates stream events without parsing them, if they differ from an earlier event only in one text.
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import { type Escapes, stringEnd } from "../../../base/text/json-string.ts";
import type { SseReader } from "../../../base/text/sse.ts";
import { AlikeEvents, dataStart, type EventFrame, frameOf, meaningOf } from "../alike-events.ts";
import type { SaidListener, StreamObservation } from "../answer.ts";
import type { ReplyReader, TextEvents } from "../conversation/reply.ts";

/** Matches the beginning of the text in an event. */
const content = /"content": ?"(?!")/;
/**
 * A probe that replaces the text found by the pattern. It shows whether the reader takes the same text from the event.
 */
const probe = "~headrace-text~";

/** An event with no other content than `text`. `data` and `raw` are its data and all its bytes, as byte text. */
interface ReadEvent {
  text: string;
  data: string;
  raw: string;
}

export class TextTemplate extends AlikeEvents {
  readonly #events: TextEvents;
  readonly #escapes: Escapes = { bytes: 0 };

  private constructor(received: EventFrame, events: TextEvents) {
    super(received);
    this.#events = events;
  }

  /** Returns a template for events like this one, or undefined if the position of the text cannot be found. */
  static of(event: ReadEvent, reader: ReplyReader, events: TextEvents): TextTemplate | undefined {
    const { text, data, raw } = event;
    const lead = dataStart(raw, data);
    const found = lead < 0 || text === probe ? null : content.exec(data);
    if (!found) return undefined;
    const start = found.index + found[0].length;
    const end = stringEnd(data, start, { bytes: 0 });
    if (end < 0) return undefined;
    const probed: unknown = JSON.parse(decodeByteText(data.slice(0, start) + probe + data.slice(end)));
    if (reader.plainText?.(probed as Record<string, unknown>) !== probe) return undefined;
    return new TextTemplate(frameOf(raw, lead + start, lead + end), events);
  }

  /**
   * Counts the event in `bytes` from `start` to `end` if it fits the template and is plain ASCII. If the event was
   * counted, the caller must send it.
   */
  takeInPlace(bytes: Buffer, start: number, end: number, observed: StreamObservation): boolean {
    const length = end - start - this.before.length - this.after.length;
    if (length <= 0 || !this.isPlain(bytes, start, end)) return false;
    observed.deliveredBytes += length;
    observed.deliveredPieces++;
    return true;
  }

  /**
   * Sends the translation of an event that was counted by `takeInPlace`. Returns the result of `ClientStream.write`.
   */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean {
    const textStart = start + this.before.length;
    const textEnd = end - this.after.length;
    const events = this.#events;
    events.took?.(bytes.toString("latin1", textStart, textEnd));
    return client.writeAround(events.next(), bytes, textStart, textEnd, events.after);
  }

  /**
   * Takes and counts the next events that fit the template, and returns their translation. `said` receives the text of
   * these events.
   */
  take(reader: SseReader, observed: StreamObservation, said?: SaidListener): string {
    const { text } = reader;
    const { before, after } = this;
    const events = this.#events;
    const escapes = this.#escapes;
    let sent = "";
    let passed = "";
    while (text.startsWith(before, reader.position)) {
      const start = reader.position + before.length;
      escapes.bytes = 0;
      const end = stringEnd(text, start, escapes);
      if (end <= start || !text.startsWith(after, end)) break;
      const written = text.slice(start, end);
      const own = escapes.bytes === 0 ? written : encodeByteText(JSON.stringify(meaningOf(written))).slice(1, -1);
      sent = `${sent}${events.next()}${own}${events.after}`;
      passed += own;
      observed.deliveredBytes += end - start - escapes.bytes;
      observed.deliveredPieces++;
      reader.position = end + after.length;
    }
    // Parsing makes a copy of the text. A slice would keep the whole received buffer in memory.
    if (sent !== "" && (events.took || said)) {
      const meaning = meaningOf(passed);
      events.took?.(meaning);
      said?.text(meaning);
    }
    return sent;
  }
}
