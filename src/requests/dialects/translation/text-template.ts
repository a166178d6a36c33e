// Translates events of an engine that differ from an earlier one in a piece of text alone, so that they need no parsing.
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import { type Escapes, stringEnd } from "../../../base/text/json-string.ts";
import type { SseReader } from "../../../base/text/sse.ts";
import { AlikeEvents, dataStart, type EventFrame, frameOf, meaningOf } from "../alike-events.ts";
import type { SaidListener, StreamObservation } from "../answer.ts";
import type { ReplyReader, TextEvents } from "../conversation/reply.ts";

/** What is looked for as the text of an event. */
const content = /"content": ?"(?!")/;
/** Stands for the text of an event while it is found out where that is. */
const probe = "~headrace-text~";

/** An event of which it is known that it tells nothing but `text`; its data, and all of it, as byte text. */
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

  /** For events like this one, whose text and data these are; undefined where it is not found out where the text is. */
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

  /** Counts the event that is `bytes` from `start` to `end`, if it is one of this kind and plain ASCII; it is to be sent then. */
  takeInPlace(bytes: Buffer, start: number, end: number, observed: StreamObservation): boolean {
    const length = end - start - this.before.length - this.after.length;
    if (length <= 0 || !this.isPlain(bytes, start, end)) return false;
    observed.deliveredBytes += length;
    observed.deliveredPieces++;
    return true;
  }

  /** Sends what an event that was taken in place becomes; see `ClientStream.write` for what it returns. */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean {
    const textStart = start + this.before.length;
    const textEnd = end - this.after.length;
    const events = this.#events;
    events.took?.(bytes.toString("latin1", textStart, textEnd));
    return client.writeAround(events.next(), bytes, textStart, textEnd, events.after);
  }

  /** Takes the events of this kind that are next, and counts them. Gives what the client gets of them; `said` is told their text. */
  take(reader: SseReader, observed: StreamObservation, said?: SaidListener): string {
    const { text } = reader;
    const { before, after } = this;
    const events = this.#events;
    const escapes = this.#escapes;
    let sent = "";
    let told = "";
    while (text.startsWith(before, reader.position)) {
      const start = reader.position + before.length;
      escapes.bytes = 0;
      const end = stringEnd(text, start, escapes);
      if (end <= start || !text.startsWith(after, end)) break;
      const written = text.slice(start, end);
      const own = escapes.bytes === 0 ? written : encodeByteText(JSON.stringify(meaningOf(written))).slice(1, -1);
      sent = `${sent}${events.next()}${own}${events.after}`;
      told += own;
      observed.deliveredBytes += end - start - escapes.bytes;
      observed.deliveredPieces++;
      reader.position = end + after.length;
    }
    // Parsed, as a piece that is only cut out keeps all that came with it in memory.
    if (sent !== "" && (events.took || said)) {
      const meaning = meaningOf(told);
      events.took?.(meaning);
      said?.text(meaning);
    }
    return sent;
  }
}
