// A streamed answer of a model server that uses the client's API format. The server's events stay, except for members
// that the gateway sets.
import type { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { GatewayError } from "../../../base/errors.ts";
import type { AnswerNames, AnswerStream, AskedRequest, Serving, StopMark } from "../answer.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { ConversationFormat } from "../conversation/format.ts";
import type { ReplyReader, ReplyUsage } from "../conversation/reply.ts";
import { isObject } from "../conversation/said.ts";
import { isEndMark } from "../end-mark.ts";
import { malformed } from "../malformed.ts";
import { streamUsage } from "../stream-usage.ts";
import { CountedReply, usageOf } from "./counted-reply.ts";
import { type Json, parsedAnswer } from "./engine-answer.ts";
import { edited, ownMembers } from "./passed-answer.ts";
import { type RepairHead, repairHead } from "./repair-head.ts";
import { TranslatedStream } from "./translated-stream.ts";

const noNames: CallNames = new Map();

/** The functions and values of a format that are needed to forward streams from servers of the same format. */
export interface PassedEvents {
  readonly format: ConversationFormat;
  /** Name of the event member that contains the whole answer, including the model's name. */
  readonly answerMember: "response" | "message";
  /**
   * Types of final events. No other event follows a final event. The client gets it only after the request has been
   * recorded.
   */
  readonly last: ReadonlySet<unknown>;
  /** A final event without content, in case a server does not send one. Empty if the format needs no such event. */
  readonly forgotten: string;
  /** Returns the event that reports an error in an open stream. `begun` describes the answer so far. */
  errorEvent(rendered: string, error: GatewayError, begun: BegunAnswer): string;
  repair(head: StreamHead): StreamRepair;
  /** Returns an observer that can end a stream at any point. An observer is used if a quota may end the answer. */
  observer(): StreamObserver;
}

/** Values for members and events that a server leaves out of a stream. Also a callback for inserted events. */
export interface StreamHead extends RepairHead {
  /** Returns the answer, with the members that the gateway sets, such as the model. */
  own(answer: Json): Json;
  /** Called for each event that the gateway inserts. */
  inserted(event: Json): void;
}

/** Adds to a stream what a server leaves out, because most clients can read only what their own vendor sends. */
export interface StreamRepair {
  /**
   * Returns the event, with the members added that the server left out. If none is missing, returns the same object.
   * `strict` is called before `before`.
   */
  strict?(event: Json): Json;
  /**
   * Returns, as text, the events that the server left out before this event. Returns undefined if the event repeats an
   * earlier one and must be dropped.
   */
  before(event: Json): string | undefined;
  /**
   * Returns a copy of an event that has already been counted. The copy has the usage figures that the server left out.
   */
  counted?(event: Json): Json;
  /** The sequence number that `before` gave to the last event. Undefined if events in this format have no numbers. */
  readonly number?: number;
}

/**
 * Observes all events of a stream. The gateway can then end the stream at any point in the way that its format
 * requires.
 */
export interface StreamObserver {
  see(event: Json): void;
  /** Returns the events that end the stream early. `usage` holds the final figures. */
  stopped(begun: BegunAnswer, usage: ReplyUsage, mark: StopMark): string;
}

export interface BegunAnswer {
  /** The last state of the whole answer, including the members that the gateway sets. */
  readonly answer: Json | undefined;
  /** Number of events so far. If the format numbers events, this is the number of the next event. */
  readonly events: number;
}

/** Matches the event types that may appear in the line `event:`. */
const typePattern = /^[\w.-]{1,128}$/;

export class PassedStream extends CountedReply implements AnswerStream {
  readonly #events: PassedEvents;
  readonly #names: AnswerNames;
  readonly #request: AskedRequest;
  readonly #observer: StreamObserver | undefined;
  readonly #repair: StreamRepair;
  #reader: ReplyReader;
  #answer: Json | undefined;
  #eventCount = 0;
  /** Events that were inserted before the current event. */
  #insertedEvents: Json[] = [];
  #serving: Serving | undefined;
  /** The final event. It is sent after the request has been recorded. */
  #last = "";

  constructor(events: PassedEvents, request: AskedRequest, names: AnswerNames) {
    super();
    this.#events = events;
    this.#request = request;
    this.#names = names;
    this.#observer = names.mayBeStopped ? events.observer() : undefined;
    this.#reader = events.format.reader(noNames);
    const model = () => this.#serving?.model.id ?? request.model;
    const head = repairHead(request, names, model, () => this.#usageSoFar());
    const own = (answer: Json) => ({ ...answer, ...parsedEdits(ownMembers(answer, this.#serving, this.#names)) });
    this.#repair = events.repair(
      Object.assign(head, { own, inserted: (event: Json) => this.#insertedEvents.push(event) }),
    );
  }

  get finishSeen(): boolean {
    return this.ended !== undefined || this.isOver;
  }

  get isOpen(): boolean {
    return !this.finishSeen;
  }

  get isOver(): boolean {
    return this.#last !== "";
  }

  servedBy(serving: Serving): void {
    this.#serving = serving;
    this.context = serving.model.context;
    this.#reader = this.#events.format.reader(noNames, serving.deployment.engine);
  }

  takeInPlace(): undefined {
    return undefined;
  }

  takeAlike(): string {
    return "";
  }

  /** Some servers send the end mark of chat completions instead of the final event. */
  isEnd(data: string): boolean {
    return this.finishSeen && isEndMark(data);
  }

  translate(data: string): string {
    if (this.isOver) return "";
    const text = decodeByteText(data);
    const received = parsedAnswer(text, this.#serving);
    this.#serving?.trace?.chunk(received);
    const event = this.#repair.strict?.(received) ?? received;
    const { type } = event;
    if (typeof type !== "string" || !typePattern.test(type)) throw malformed("an event without a type");
    // Clients treat the first event as the beginning of the answer. If an event of another kind comes first, it is
    // dropped.
    const isEarly = this.#eventCount === 0 && !this.#reader.isPart(event);
    const before = isEarly ? "" : this.#repair.before(event);
    if (before === undefined) return "";
    this.#reader.event(event, this);
    if (isEarly) return "";
    for (const one of this.#insertedEvents) this.#note(one);
    if (this.#insertedEvents.length > 0) this.#insertedEvents = [];
    this.#note(event);
    const { number } = this.#repair;
    this.#eventCount = (number ?? this.#eventCount) + 1;
    const line = this.#line(text, received, this.#repair.counted?.(event) ?? event, number);
    const rendered = encodeByteText(`event: ${type}\ndata: ${line}\n\n`);
    if (!this.#events.last.has(type)) return before === "" ? rendered : encodeByteText(before) + rendered;
    this.#last = rendered;
    return encodeByteText(before);
  }

  /** Passes an event that the client gets to the observer, and keeps the answer in this event. */
  #note(event: Json): void {
    this.#observer?.see(event);
    const answer = event[this.#events.answerMember];
    if (isObject(answer)) this.#answer = answer;
  }

  /** Returns the JSON of the event for the client. If nothing in the event changes, this is the server's own text. */
  #line(text: string, received: Json, event: Json, number: number | undefined): string {
    const isNumbered = number === undefined || number === event["sequence_number"];
    if (event !== received) {
      const own = isNumbered ? event : { ...event, sequence_number: number };
      return this.#own(JSON.stringify(own), own);
    }
    const own = this.#own(text, event);
    return isNumbered ? own : edited(own, { sequence_number: String(number) });
  }

  #usageSoFar(): ReplyUsage {
    const { reportedUsage } = this;
    const counted = usageOf(streamUsage(this.#request, this, true), reportedUsage);
    const promptTokens = reportedUsage.promptTokens ?? counted.promptTokens;
    const completionTokens = Math.max(counted.completionTokens ?? 0, reportedUsage.completionTokens ?? 0);
    return { ...counted, promptTokens, completionTokens };
  }

  /** Returns the event as JSON on one line, including the members that the gateway sets. */
  #own(text: string, event: Json): string {
    const line = text.includes("\n") ? JSON.stringify(event) : text;
    const answer = event[this.#events.answerMember];
    if (!isObject(answer)) return line;
    this.#answer = answer;
    const edits = ownMembers(answer, this.#serving, this.#names);
    if (Object.keys(edits).length === 0) return line;
    const own = edited(JSON.stringify(answer), edits);
    this.#answer = JSON.parse(own) as Json;
    return edited(line, { [this.#events.answerMember]: own });
  }

  /** Converts a whole answer to events, because its server ignored `stream`. */
  whole(bytes: ByteSpan): string {
    const { format } = this.#events;
    const seal = { seal: () => "", open: () => undefined };
    const translation = { from: format, to: format, names: noNames, seal };
    const stream = new TranslatedStream(this.#request, this.#names, this.#serving as Serving, translation);
    const events = stream.whole(bytes);
    this.deliveredBytes = stream.deliveredBytes;
    this.deliveredPieces = stream.deliveredPieces;
    this.ended = { reason: "stop" };
    this.reportedUsage = stream.reportedUsage;
    this.#last = stream.ending();
    return events;
  }

  ending(): string {
    return this.#last === "" ? this.#events.forgotten : this.#last;
  }

  stopped(mark: StopMark | undefined): string {
    const begun = { answer: this.#answer, events: this.#eventCount };
    const usage = usageOf(streamUsage(this.#request, this, false), this.reportedUsage);
    return encodeByteText((mark && this.#observer?.stopped(begun, usage, mark)) ?? "");
  }

  errorEvent(rendered: string, error: GatewayError): string {
    const begun = { answer: this.#answer, events: this.#eventCount };
    return encodeByteText(this.#events.errorEvent(rendered, error, begun));
  }
}

function parsedEdits(edits: Readonly<Record<string, string>>): Json {
  return Object.fromEntries(Object.entries(edits).map(([name, value]) => [name, JSON.parse(value) as unknown]));
}
