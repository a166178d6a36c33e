// Recognises stream events that differ from an earlier event in one text only, so that they are not parsed.
import { decodeByteText, detachedByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { backslash, firstNonAscii, firstPrintable, quote } from "../../base/text/json-string.ts";
import type { PlacedEvent } from "./answer.ts";

/** An event split at its text, as byte text: the part before and the part after, line ends included. */
export interface EventFrame {
  before: string;
  after: string;
}

/** Returns the frame of `event`, whose text is between `textStart` and `textEnd`. */
export function frameOf(event: string, textStart: number, textEnd: number): EventFrame {
  return { before: detachedByteText(event.slice(0, textStart)), after: detachedByteText(event.slice(textEnd)) };
}

/** Returns the offset of the data if it is the only line of the event, and -1 otherwise. */
export function dataStart(event: string, data: string): number {
  const lead = event.startsWith("data: ") ? 6 : 5;
  const lineEnds = event.slice(lead + data.length);
  return event.startsWith(data, lead) && (lineEnds === "\n\n" || lineEnds === "\r\n\r\n") ? lead : -1;
}

/** Returns the text that a JSON string stands for. `written` is the string as byte text, without its quotes. */
export function meaningOf(written: string): string {
  return String(JSON.parse(`"${decodeByteText(written)}"`));
}

/**
 * Maximum number of templates that are made before one is useful; this limits wasted work on a stream whose events keep
 * changing.
 */
const maxTrials = 4;
/** Each event that needs no parsing allows this part of a further template. */
const trialsPerEvent = 0.5;

/** Limits the work on templates for a stream that no template fits. */
export class TemplateTrials {
  #remaining = maxTrials;

  get hasTrials(): boolean {
    return this.#remaining >= 1;
  }

  take(): void {
    this.#remaining--;
  }

  /** Records how many events needed no parsing. */
  spared(events: number): void {
    if (this.#remaining < maxTrials) this.#remaining = Math.min(maxTrials, this.#remaining + events * trialsPerEvent);
  }
}

export abstract class AlikeEvents implements PlacedEvent {
  // The texts are copied out of the frame, because with many streams each further object is a cache miss for the
  // processor.
  protected readonly before: string;
  protected readonly after: string;
  /** The beginning and the end of the event, concatenated. */
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
