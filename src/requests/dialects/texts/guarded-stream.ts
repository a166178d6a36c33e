// Checks a streamed answer by guardrails, which hold back, mask or block texts within the client's events.

import type { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { GatewayError } from "../../../base/errors.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { AnswerStream, Serving, StopMark } from "../answer.ts";
import { endMark } from "../end-mark.ts";
import { type Event, type PieceSlot, sayWithheld, textsOfEvent } from "./streamed-texts.ts";
import { ContentBlocked, type GuardedText, guardedWhole, type TextGuard } from "./text-guard.ts";
import type { TextSlot } from "./text-slots.ts";

/** A text of the answer that has begun. */
interface OpenText {
  readonly guarded: GuardedText;
  /** Returns an event like the text's last event, with another piece of the text. */
  with: PieceSlot["with"];
  /**
   * The text as the model server sent it, if the format repeats it at its end, and the text as passed on to the client.
   */
  raw: string;
  given: string;
  /** The last characters that were passed on, as context for the next check. */
  before: string;
}

/** A buffered event for the client, with its pieces of texts. */
interface Entry {
  readonly pieces: readonly { readonly open: OpenText; given: string; put(text: string): void }[];
  render(): string;
}

/**
 * Number of characters that are checked together. From the first number on, a check begins at the end of a sentence; at
 * the second, in any case.
 */
const [sentenceWindow, maxWindowLength] = [80, 400];
/** Maximum number of events that are buffered without a check; most of these have no text. */
const maxBufferedEvents = 256;
const contextLength = 400;
const sentenceEnd = /[.!?\n。！？]\s?$/;
const noText: GuardedText = { feed: () => "", end: () => "" };
const noMark: StopMark = { stopped_by: "quota", quota: {} };

export class GuardedStream implements AnswerStream {
  /** The unguarded stream. */
  readonly inner: AnswerStream;
  readonly #guard: TextGuard;
  readonly #texts = new Map<string, OpenText>();
  /** Ended texts, by their content as the model server sent it. */
  readonly #whole = new Map<string, OpenText>();
  #buffered: Entry[] = [];
  #bufferedLength = 0;
  #bufferedEvents = 0;
  #isDue = false;
  /** Characters of remembered texts. Each text counts twice: as received, and as passed on. */
  #knownLength = 0;
  /** Events whose check is complete, and the number of characters of all events that are in a check or past it. */
  #asked: Entry[] = [];
  #askedEvents = 0;
  #asking: Promise<void> | undefined;
  #number: number | undefined;
  /** Events of the same batch that precede the blocked text. */
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
    // The trace is left out, because it would record texts that the guardrails hold back.
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
   * The approximate buffered bytes: texts that have not ended, events, and texts that the format repeats at the end.
   */
  get bufferedBytes(): number {
    return (
      this.#texts.size * this.#guard.bytesOfText + this.#bufferedEvents + this.#askedEvents + 2 * this.#knownLength
    );
  }

  /** True if the buffered events must be checked before further events are taken. */
  get isDue(): boolean {
    return this.#isDue;
  }

  translate(data: string): string {
    return this.#cutWhereBlocked(this.#pass(this.inner.translate(data, undefined)));
  }

  whole(bytes: ByteSpan): string {
    return this.#cutWhereBlocked(this.#pass(this.inner.whole(bytes)));
  }

  /** Ends the stream. If the guard asks a service, call `ask` and `taken` for the buffered events first. */
  ending(): string {
    this.#end("");
    return this.#pass(this.inner.ending());
  }

  /** Stops the stream. At the client's own limit, buffered events are checked as at a regular end. */
  stopped(mark: StopMark | undefined): string {
    if (mark === undefined) {
      this.#end("");
      return this.#pass(this.inner.stopped(mark));
    }
    // The service is not asked after a stop, so unchecked events are dropped.
    if (this.#guard.asks) return this.#lastOf(this.inner.stopped(mark));
    this.#end("");
    for (const event of this.inner.stopped(mark).split("\n\n")) if (event !== "") this.#add(event);
    return this.#release();
  }

  errorEvent(rendered: string, error: GatewayError): string {
    if (error instanceof ContentBlocked) return this.#last + this.#lastOf(this.inner.stopped(noMark));
    if (!this.#guard.asks) this.#end("");
    const rest = this.#guard.asks ? "" : this.#release();
    // `lastOf` also replaces the texts in the error event, because a failed response repeats all its texts.
    return rest + this.#lastOf(this.inner.errorEvent(rendered, error));
  }

  /**
   * Checks all buffered events, once any earlier check is complete. The promise settles when `taken` can return the
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

  /** Returns the buffered events after their check. Throws ContentBlocked if the guardrails block them. */
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

  /** Adds one or several events, in byte text. */
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

  /** Checks a text that did not arrive in pieces. */
  #feedWhole({ text, isJson, put }: TextSlot): Entry["pieces"][number] {
    const given = guardedWhole(this.#guard, text, isJson);
    const open: OpenText = { guarded: noText, with: () => ({}), raw: text, given: "", before: "" };
    this.#whole.set(text, open);
    this.#knownLength += text.length;
    this.#bufferedLength += given.length;
    return { open, given, put };
  }

  /** Ends the texts whose keys begin with `beginning`, and queues their last characters as events. */
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
   * Returns the last events, with the texts as passed on. If the rest is withheld, the events give that as the reason.
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

  /** Reports whether the event has a sequence number, which must be changed for the client. */
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

/** Reports whether the event holds neither choices nor usage. */
function isEmpty({ choices, usage }: Event): boolean {
  return Array.isArray(choices) && choices.length === 0 && (usage === undefined || usage === null);
}

const dataLine = /^data: ?(.*)$/m;

/** Returns undefined for an event without JSON data: a comment, or the end mark. */
function eventOf(written: string): Event | undefined {
  const data = dataLine.exec(written)?.[1];
  return data === undefined || data === endMark ? undefined : (JSON.parse(decodeByteText(data)) as Event);
}
