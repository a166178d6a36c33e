// Recognises stream events that differ from an earlier event only in one text. They need not be parsed.
import { decodeByteText, detachedByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { backslash, firstNonAscii, firstPrintable, quote } from "../../base/text/json-string.ts";
import type { PlacedEvent } from "./answer.ts";

/**
 * A stream event without its text, as byte text: the part before the text and the part after it, including line ends.
 */
export interface EventFrame {
  before: string;
  after: string;
}

/** Returns the parts of `event` around its text, which is between `textStart` and `textEnd`. */
export function frameOf(event: string, textStart: number, textEnd: number): EventFrame {
  return { before: detachedByteText(event.slice(0, textStart)), after: detachedByteText(event.slice(textEnd)) };
}

/** Returns the offset of the data if it is the only line of the event. Returns -1 otherwise. */
export function dataStart(event: string, data: string): number {
  const lead = event.startsWith("data: ") ? 6 : 5;
  const lineEnds = event.slice(lead + data.length);
  return event.startsWith(data, lead) && (lineEnds === "\n\n" || lineEnds === "\r\n\r\n") ? lead : -1;
}

/** Decodes a JSON string. `written` is the string as byte text, without its quotes. */
export function meaningOf(written: string): string {
  return String(JSON.parse(`"${decodeByteText(written)}"`));
}

/**
 * Maximum number of templates that are created before one is useful. Otherwise a stream whose events keep changing
 * would cause much useless work.
 */
const maxTrials = 4;
/** Additional templates that may be created for each event that needed no parsing. */
const trialsPerEvent = 0.5;

/** Limits the work on templates for a stream in which no template fits. */
export class TemplateTrials {
  #remaining = maxTrials;

  get hasTrials(): boolean {
    return this.#remaining >= 1;
  }

  take(): void {
    this.#remaining--;
  }

  /** Records that this many events needed no parsing. */
  spared(events: number): void {
    if (this.#remaining < maxTrials) this.#remaining = Math.min(maxTrials, this.#remaining + events * trialsPerEvent);
  }
}

export abstract class AlikeEvents implements PlacedEvent {
  // The texts are copied out of the frame. With many streams, each further object would be a cache miss for the
  // processor.
  protected readonly before: string;
  protected readonly after: string;
  /** The part before the text and the part after it, concatenated. */
  readonly #frame: Buffer;

  constructor({ before, after }: EventFrame) {
    this.before = before;
    this.after = after;
    const { length } = before;
    this.#frame = Buffer.allocUnsafeSlow(length + after.length);
    this.#frame.write(before, 0, "latin1");
    this.#frame.write(after, length, "latin1");
  }

  abstract send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean;

  /**
   * Reports whether the bytes from `start` to `end` are an event of this kind whose text is plain ASCII without
   * escapes.
   */
  protected isPlain(bytes: Buffer, start: number, end: number): boolean {
    const frame = this.#frame;
    const textStart = start + this.before.length;
    const textEnd = end - this.after.length;
    if (textEnd < textStart) return false;
    if (bytes.compare(frame, 0, textStart - start, start, textStart) !== 0) return false;
    if (bytes.compare(frame, textStart - start, frame.length, textEnd, end) !== 0) return false;
    for (let at = textStart; at < textEnd; at++) {
      const code = bytes[at] as number;
      if (code < firstPrintable || code >= firstNonAscii || code === quote || code === backslash) return false;
    }
    return true;
  }
}
