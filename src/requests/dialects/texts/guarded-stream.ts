// Checks a streamed answer with guardrails. They hold back, mask or block texts within the client's events.

import type { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { GatewayError } from "../../../base/errors.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { AnswerStream, Serving, StopMark } from "../answer.ts";
import { endMark } from "../end-mark.ts";
import { type Event, type PieceSlot, sayWithheld, textsOfEvent } from "./streamed-texts.ts";
import { ContentBlocked, type GuardedText, guardedWhole, type TextGuard } from "./text-guard.ts";
import type { TextSlot } from "./text-slots.ts";

/** A text of the answer that has begun and may continue. */
interface OpenText {
  readonly guarded: GuardedText;
  /**
   * Returns an event with another piece of the text. Everything else in the event is as in the last event of this text.
   */
  with: PieceSlot["with"];
  /**
   * The text as the model server sent it, in case the format repeats the text at its end. `given` is the text that the
   * client got.
   */
  raw: string;
  given: string;
  /** The last characters that the client got, as context for the next check. */
  before: string;
}

/** A buffered event for the client, and the pieces of texts in it. */
interface Entry {
  readonly pieces: readonly { readonly open: OpenText; given: string; put(text: string): void }[];
  render(): string;
}

/**
 * Number of characters that are checked together. After the first number, a check begins at the end of a sentence.
 * After the second number, it begins in any case.
 */
const [sentenceWindow, maxWindowLength] = [80, 400];
/** Maximum number of events that are buffered without a check. Most of these events have no text. */
const maxBufferedEvents = 256;
const contextLength = 400;
const sentenceEnd = /[.!?\n。！？]\s?$/;
const noText: GuardedText = { feed: () => "", end: () => "" };
const noMark: StopMark = { stopped_by: "quota", quota: {} };

export class GuardedStream implements AnswerStream {
  /** The stream of the same answer without the check. */
  readonly inner: AnswerStream;
  readonly #guard: TextGuard;
  readonly #texts = new Map<string, OpenText>();
  /** Texts that have ended, by their content as the model server sent it. */
  readonly #whole = new Map<string, OpenText>();
  #buffered: Entry[] = [];
  #bufferedLength = 0;
  #bufferedEvents = 0;
  #isDue = false;
  /** Number of characters in remembered texts. Each text counts twice: as it was received, and as the client got it. */
  #knownLength = 0;
  /**
   * Events whose check is complete. The second member is the number of characters in all events that are being checked
   * or have been checked.
   */
  #asked: Entry[] = [];
  #askedEvents = 0;
  #asking: Promise<void> | undefined;
  #number: number | undefined;
  /** Events of the same batch that come before the blocked text. */
  #last = "";
  #isCut = false;

  constructor(inner: AnswerStream, guard: TextGuard) {
    this.inner = inner;
    this.#guard = guard;
  }

  get reported(): TokenUsage | undefined {
    return this.inner.reported;
  }

  get reportedPrompt(): AnswerStream["reportedPrompt"] {
    return this.inner.reportedPrompt;
  }

  get deliveredBytes(): number {
    return this.inner.deliveredBytes;
  }

  get deliveredPieces(): number {
    return this.inner.deliveredPieces;
  }

  get cut(): AnswerStream["cut"] {
    return this.inner.cut;
  }

  get countedPrompts(): AnswerStream["countedPrompts"] {
    return this.inner.countedPrompts;
  }

  get context(): number | undefined {
    return this.inner.context;
  }

  get finishSeen(): boolean {
    return this.inner.finishSeen;
  }

  get isOpen(): boolean {
    return this.inner.isOpen;
  }

  get isUnfinished(): boolean {
    return this.inner.isUnfinished ?? false;
  }

  get isOver(): boolean {
    return this.inner.isOver;
  }

  usageSoFar(): TokenUsage | undefined {
    return this.inner.usageSoFar?.();
  }

  servedBy({ model, deployment }: Serving): void {
    // The trace is left out, because it would record texts that the guardrails are holding back.
    this.inner.servedBy({ model, deployment });
  }

  takeInPlace(): undefined {
    return undefined;
  }

  takeAlike(): string {
    return "";
  }

  isEnd(data: string): boolean {
    return this.inner.isEnd(data);
  }

  /**
   * Approximate number of buffered bytes. It includes texts that have not ended, events, and texts that the format
   * repeats at the end.
   */
  get bufferedBytes(): number {
    return (
      this.#texts.size * this.#guard.bytesOfText + this.#bufferedEvents + this.#askedEvents + 2 * this.#knownLength
    );
  }

  /** True if the buffered events must be checked before more events are taken. */
  get isDue(): boolean {
    return this.#isDue;
  }

  translate(data: string): string {
    return this.#cutWhereBlocked(this.#pass(this.inner.translate(data, undefined)));
  }

  whole(bytes: ByteSpan): string {
    return this.#cutWhereBlocked(this.#pass(this.inner.whole(bytes)));
  }

  /**
   * Ends the stream. If the guard asks a service, the buffered events still need calls of `ask` and `taken` before this
   * function.
   */
  ending(): string {
    this.#end("");
    return this.#pass(this.inner.ending());
  }

  /** Stops the stream. If it stops at the client's own limit, the buffered events are checked as at a regular end. */
  stopped(mark: StopMark | undefined): string {
    if (mark === undefined) {
      this.#end("");
      return this.#pass(this.inner.stopped(mark));
    }
    // After a stop, the service is not asked, so events that have not been checked are dropped.
    if (this.#guard.asks) return this.#lastOf(this.inner.stopped(mark));
    this.#end("");
    for (const event of this.inner.stopped(mark).split("\n\n")) if (event !== "") this.#add(event);
    return this.#release();
  }

  errorEvent(rendered: string, error: GatewayError): string {
    if (error instanceof ContentBlocked) return this.#last + this.#lastOf(this.inner.stopped(noMark));
    if (!this.#guard.asks) this.#end("");
    const rest = this.#guard.asks ? "" : this.#release();
    // In the error event, `lastOf` also replaces the texts, because a failed response repeats all its texts.
    return rest + this.#lastOf(this.inner.errorEvent(rendered, error));
  }

  /**
   * Checks all buffered events after any earlier check is complete. When the promise settles, `taken` can return the
   * result.
   */
  ask(): Promise<void> {
    const before = this.#asking;
    this.#asking = before ? before.then(() => this.#ask()) : this.#ask();
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const texts = new Map<OpenText, string>();
    const buffered = this.#buffered;
    this.#askedEvents += this.#bufferedEvents;
    this.#drop();
    for (const { pieces } of buffered) {
      for (const { open, given } of pieces) texts.set(open, (texts.get(open) ?? "") + given);
    }
    const asked = [...texts].filter(([, text]) => text !== "");
    const answers =
      asked.length > 0 ? await this.#guard.ask(asked.map(([{ before }, text]) => ({ text, before }))) : [];
    this.#isDue = false;
    if (this.#guard.blockedBy !== undefined) {
      this.#drop();
      this.#asked = [];
      return;
    }
    for (const entry of buffered) this.#asked.push(entry);
    asked.forEach(([open, text], index) => {
      const answer = answers[index] ?? "";
      if (answer === text) return;
      let rest = answer;
      for (const { pieces } of buffered) {
        for (const piece of pieces) {
          if (piece.open !== open) continue;
          piece.given = rest;
          piece.put(rest);
          rest = "";
        }
      }
    });
  }

  /** Returns the buffered events after their check. If the guardrails block them, throws ContentBlocked. */
  taken(): string {
    const asked = this.#asked;
    this.#asked = [];
    this.#askedEvents = 0;
    return this.#cutWhereBlocked(this.#rendering(asked));
  }

  #cutWhereBlocked(events: string): string {
    const { blockedBy } = this.#guard;
    if (blockedBy === undefined || this.#isCut) return events;
    this.#isCut = true;
    this.#last = events;
    throw new ContentBlocked(blockedBy);
  }

  /** Adds one or more events, in byte text. */
  #pass(events: string): string {
    for (const event of events.split("\n\n")) if (event !== "") this.#add(event);
    if (this.#guard.asks && this.#bufferedLength > 0) {
      this.#isDue ||= this.#buffered.length >= maxBufferedEvents || this.#bufferedLength >= maxWindowLength;
      return "";
    }
    return this.#release();
  }

  #add(written: string): void {
    const event = eventOf(written);
    if (event === undefined) {
      if (written.includes(endMark)) this.#end("");
      this.#buffered.push({ pieces: [], render: () => `${written}\n\n` });
      return;
    }
    const { pieces, wholes, ends } = textsOfEvent(event);
    const isNamed = written.startsWith("event:");
    const seen = pieces.map((piece) => this.#feed(event, piece, ends));
    for (const beginning of ends) this.#end(beginning);
    for (const whole of wholes) if (!this.#whole.has(whole.text)) seen.push(this.#feedWhole(whole));
    this.#bufferedEvents += written.length;
    const isOwn = pieces.length > 0 || wholes.length > 0 || this.#isRenumbered(event);
    const render = () => {
      for (const { text, put } of wholes) put(this.#whole.get(text)?.given ?? "");
      const isWithheld = this.#guard.blockedBy !== undefined;
      if (isWithheld) sayWithheld(event);
      return isOwn || isWithheld ? this.#rendered(event, isNamed) : `${written}\n\n`;
    };
    this.#buffered.push({ pieces: seen, render });
  }

  #feed(event: Event, piece: PieceSlot, ends: readonly string[]): Entry["pieces"][number] {
    const { key, text, isJson, put } = piece;
    let open = this.#texts.get(key);
    if (!open) {
      open = { guarded: this.#guard.open(isJson), with: piece.with, raw: "", given: "", before: "" };
      this.#texts.set(key, open);
    }
    open.with = piece.with;
    if (event["sequence_number"] !== undefined || String(event["type"]).startsWith("transcript.")) {
      open.raw += text;
      this.#knownLength += text.length;
    }
    let given = open.guarded.feed(text);
    if (ends.some((beginning) => key.startsWith(beginning))) {
      given += open.guarded.end();
      this.#close(key, open);
    }
    put(given);
    this.#bufferedLength += given.length;
    if (this.#bufferedLength >= sentenceWindow && sentenceEnd.test(given)) this.#isDue = this.#guard.asks;
    return { open, given, put };
  }

  /** Checks a text that arrived as a whole and not in pieces. */
  #feedWhole({ text, isJson, put }: TextSlot): Entry["pieces"][number] {
    const given = guardedWhole(this.#guard, text, isJson);
    const open: OpenText = { guarded: noText, with: () => ({}), raw: text, given: "", before: "" };
    this.#whole.set(text, open);
    this.#knownLength += text.length;
    this.#bufferedLength += given.length;
    return { open, given, put };
  }

  /** Ends the texts whose keys begin with `beginning`, and adds their last characters to the queue as events. */
  #end(beginning: string): void {
    for (const [key, open] of this.#texts) {
      if (!key.startsWith(beginning)) continue;
      let rest = open.guarded.end();
      this.#close(key, open);
      if (rest === "") continue;
      const event = open.with(rest);
      const put = (text: string) => {
        rest = text;
      };
      this.#bufferedLength += rest.length;
      const isNamed = event["choices"] === undefined;
      this.#buffered.push({
        pieces: [{ open, given: rest, put }],
        render: () => (rest === "" ? "" : this.#rendered(open.with(rest), isNamed)),
      });
    }
  }

  #close(key: string, open: OpenText): void {
    this.#texts.delete(key);
    if (open.raw !== "") this.#whole.set(open.raw, open);
  }

  #release(): string {
    const buffered = this.#buffered;
    this.#drop();
    return this.#rendering(buffered);
  }

  #rendering(entries: readonly Entry[]): string {
    let events = "";
    for (const { pieces, render } of entries) {
      for (const { open, given } of pieces) {
        if (open.raw !== "") open.given += given;
        if (this.#guard.asks) open.before = (open.before + given).slice(-contextLength);
      }
      events += render();
    }
    return events;
  }

  #drop(): void {
    this.#buffered = [];
    this.#bufferedLength = 0;
    this.#bufferedEvents = 0;
  }

  /**
   * Returns the last events, with the texts that the client got. If the rest of the answer is withheld, the events give
   * that as the finish reason.
   */
  #lastOf(last: string): string {
    this.#drop();
    for (const [key, open] of this.#texts) this.#close(key, open);
    const isWithheld = this.#guard.blockedBy !== undefined;
    let events = "";
    for (const written of last.split("\n\n")) {
      const event = written === "" ? undefined : eventOf(written);
      if (event === undefined) {
        if (written !== "") events += `${written}\n\n`;
        continue;
      }
      const { pieces, wholes } = textsOfEvent(event);
      for (const { put } of pieces) put("");
      for (const { text, put } of wholes) put(this.#whole.get(text)?.given ?? "");
      if (isWithheld) sayWithheld(event);
      if (isWithheld && isEmpty(event)) continue;
      events += this.#rendered(event, written.startsWith("event:"));
    }
    return events;
  }

  /** Reports whether the event has a sequence number. For the client, this number must be changed. */
  #isRenumbered(event: Event): boolean {
    const { sequence_number: number } = event;
    if (typeof number !== "number") return false;
    this.#number ??= number;
    return true;
  }

  #rendered(event: Event, isNamed: boolean): string {
    if (typeof event["sequence_number"] === "number") {
      this.#number ??= event["sequence_number"];
      event["sequence_number"] = this.#number++;
    }
    const data = `data: ${encodeByteText(JSON.stringify(event))}\n\n`;
    return isNamed ? `event: ${event["type"]}\n${data}` : data;
  }
}

/** Reports whether the event contains neither choices nor usage. */
function isEmpty({ choices, usage }: Event): boolean {
  return Array.isArray(choices) && choices.length === 0 && (usage === undefined || usage === null);
}

const dataLine = /^data: ?(.*)$/m;

/** Returns undefined if an event has no JSON data. Such an event is a comment or the end mark. */
function eventOf(written: string): Event | undefined {
  const data = dataLine.exec(written)?.[1];
  return data === undefined || data === endMark ? undefined : (JSON.parse(decodeByteText(data)) as Event);
}
