// Recognises events of a stream that differ from an earlier one in one text alone, so that they need no parsing.
import { decodeByteText, detachedByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { backslash, firstNonAscii, firstPrintable, quote } from "../../base/text/json-string.ts";
import type { PlacedEvent } from "./answer.ts";

/** All but the text of an event, as byte text: what it begins and ends with, line ends included. */
export interface EventFrame {
  before: string;
  after: string;
}

/** `event`: of which the text is what stands from `textStart` to `textEnd`. */
export function frameOf(event: string, textStart: number, textEnd: number): EventFrame {
  return { before: detachedByteText(event.slice(0, textStart)), after: detachedByteText(event.slice(textEnd)) };
}

/** Where the data begins in an event that is one line of it, and no other; -1 where it is not. */
export function dataStart(event: string, data: string): number {
  const lead = event.startsWith("data: ") ? 6 : 5;
  const lineEnds = event.slice(lead + data.length);
  return event.startsWith(data, lead) && (lineEnds === "\n\n" || lineEnds === "\r\n\r\n") ? lead : -1;
}

/** The text that stands as `written` in a JSON string, as byte text. */
export function meaningOf(written: string): string {
  return String(JSON.parse(`"${decodeByteText(written)}"`));
}

/** Templates made before one has been of use; what a stream of changing events loses in vain. */
const maxTrials = 4;
/** Each event that a template spared earns this part of another one. */
const trialsPerEvent = 0.5;

/** Bounds what is spent on templates for a stream that none fits. */
export class TemplateTrials {
  #left = maxTrials;

  get areLeft(): boolean {
    return this.#left >= 1;
  }

  take(): void {
    this.#left--;
  }

  /** So many events needed no parsing. */
  spared(events: number): void {
    if (this.#left < maxTrials) this.#left = Math.min(maxTrials, this.#left + events * trialsPerEvent);
  }
}

export abstract class AlikeEvents implements PlacedEvent {
  // Apart, and not in their frame: with many streams each object that an event leads to has left the processor's cache.
  protected readonly before: string;
  protected readonly after: string;
  /** What the event begins with and ends with, one behind the other. */
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

  /** Whether the event that is `bytes` from `start` to `end` is one of this kind, and its text plain ASCII without escapes. */
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
