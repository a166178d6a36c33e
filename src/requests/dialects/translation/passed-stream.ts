// A streamed answer of an engine that speaks the client's format: its own events, but for what is ours to say.
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

/** What of a format a stream of its own events depends on. */
export interface PassedEvents {
  readonly format: ConversationFormat;
  /** The member of an event that is the answer as a whole, where it has one: there the model is named. */
  readonly holder: "response" | "message";
  /** The types of the events that come last: nothing follows them, and the client gets them once the end is on record. */
  readonly last: ReadonlySet<unknown>;
  /** The event that comes last and tells nothing, for servers that forget it; empty where the format has none. */
  readonly forgotten: string;
  /** The event that tells an error in an open stream; `begun`: what came of it so far. */
  errorEvent(rendered: string, error: GatewayError, begun: BegunAnswer): string;
  repair(head: StreamHead): StreamRepair;
  /** What knows how to end a stream anywhere. Made where a quota may do that. */
  follower(): StreamFollower;
}

/** The values of members and events that a server leaves out of a stream, and who is told of those events. */
export interface StreamHead extends RepairHead {
  /** Returns the answer with the members that are the gateway's to say. */
  own(answer: Json): Json;
  /** Called for each event that is inserted. */
  inserted(event: Json): void;
}

/** Makes a stream strict: clients read what their own vendor sends, and few read anything else. */
export interface StreamRepair {
  /** Returns the event with the members that the server left out; the same object where there are none. Comes before `before`. */
  strict?(event: Json): Json;
  /**
   * The events that the server left out before this one, as text; undefined where the event repeats an earlier one, and is
   * dropped.
   */
  before(event: Json): string | undefined;
  /** Returns an event whose usage was counted with the figures that its server left out. */
  counted?(event: Json): Json;
  /** The number of the event that came last through `before`; undefined where events have none. */
  readonly number?: number;
}

/** Sees all events of a stream, so that it can be ended as its format has it wherever it is. */
export interface StreamFollower {
  see(event: Json): void;
  /** The events that end it. `usage`: what counts. */
  stopped(begun: BegunAnswer, usage: ReplyUsage, mark: StopMark): string;
}

export interface BegunAnswer {
  /** The answer as it was told last as a whole, with what is ours to say. */
  readonly held: Json | undefined;
  /** The events that there were, or, where the format numbers them, the number that comes next. */
  readonly events: number;
}

/** What is written into the line of an event's name. */
const typePattern = /^[\w.-]{1,128}$/;

export class PassedStream extends CountedReply implements AnswerStream {
  readonly #events: PassedEvents;
  readonly #names: AnswerNames;
  readonly #request: AskedRequest;
  readonly #follower: StreamFollower | undefined;
  readonly #repair: StreamRepair;
  #reader: ReplyReader;
  #held: Json | undefined;
  #eventCount = 0;
  /** The events that were inserted before the one at hand. */
  #insertedEvents: Json[] = [];
  #serving: Serving | undefined;
  /** The event that ends the stream. */
  #last = "";

  constructor(events: PassedEvents, request: AskedRequest, names: AnswerNames) {
    super();
    this.#events = events;
    this.#request = request;
    this.#names = names;
    this.#follower = names.mayBeStopped ? events.follower() : undefined;
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

  /** Some servers send the mark of chat completions in the place of the last event. */
  isEnd(data: string): boolean {
    return this.finishSeen && isEndMark(data);
  }

  translate(data: string): string {
    if (this.isOver) return "";
    const text = decodeByteText(data);
    const told = parsedAnswer(text, this.#serving);
    this.#serving?.trace?.chunk(told);
    const event = this.#repair.strict?.(told) ?? told;
    const { type } = event;
    if (typeof type !== "string" || !typePattern.test(type)) throw malformed("an event without a type");
    // A client takes its first event for the begin of the answer.
    const isEarly = this.#eventCount === 0 && !this.#reader.isPart(event);
    const before = isEarly ? "" : this.#repair.before(event);
    if (before === undefined) return "";
    this.#reader.event(event, this);
    if (isEarly) return "";
    for (const one of this.#insertedEvents) this.#tell(one);
    if (this.#insertedEvents.length > 0) this.#insertedEvents = [];
    this.#tell(event);
    const { number } = this.#repair;
    this.#eventCount = (number ?? this.#eventCount) + 1;
    const line = this.#line(text, told, this.#repair.counted?.(event) ?? event, number);
    const rendered = encodeByteText(`event: ${type}\ndata: ${line}\n\n`);
    if (!this.#events.last.has(type)) return before === "" ? rendered : encodeByteText(before) + rendered;
    this.#last = rendered;
    return encodeByteText(before);
  }

  /** Notes an event that the client gets. */
  #tell(event: Json): void {
    this.#follower?.see(event);
    const held = event[this.#events.holder];
    if (isObject(held)) this.#held = held;
  }

  /** Returns the JSON of the event that the client gets: the server's own text where nothing in it is to be changed. */
  #line(text: string, told: Json, event: Json, number: number | undefined): string {
    const isNumbered = number === undefined || number === event["sequence_number"];
    if (event !== told) {
      const own = isNumbered ? event : { ...event, sequence_number: number };
      return this.#own(JSON.stringify(own), own);
    }
    const own = this.#own(text, event);
    return isNumbered ? own : edited(own, { sequence_number: String(number) });
  }

  #usageSoFar(): ReplyUsage {
    const { told } = this;
    const counted = usageOf(streamUsage(this.#request, this, true), told);
    const promptTokens = told.promptTokens ?? counted.promptTokens;
    const completionTokens = Math.max(counted.completionTokens ?? 0, told.completionTokens ?? 0);
    return { ...counted, promptTokens, completionTokens };
  }

  /** JSON of the event on one line, with what is ours to say. */
  #own(text: string, event: Json): string {
    const line = text.includes("\n") ? JSON.stringify(event) : text;
    const held = event[this.#events.holder];
    if (!isObject(held)) return line;
    this.#held = held;
    const edits = ownMembers(held, this.#serving, this.#names);
    if (Object.keys(edits).length === 0) return line;
    const own = edited(JSON.stringify(held), edits);
    this.#held = JSON.parse(own) as Json;
    return edited(line, { [this.#events.holder]: own });
  }

  /** A server that ignores that a stream was asked for: its answer is told as if it had been one. */
  whole(bytes: ByteSpan): string {
    const { format } = this.#events;
    const seal = { seal: () => "", open: () => undefined };
    const translation = { from: format, to: format, names: noNames, seal };
    const stream = new TranslatedStream(this.#request, this.#names, this.#serving as Serving, translation);
    const events = stream.whole(bytes);
    this.deliveredBytes = stream.deliveredBytes;
    this.deliveredPieces = stream.deliveredPieces;
    this.ended = { reason: "stop" };
    this.told = stream.told;
    this.#last = stream.ending();
    return events;
  }

  ending(): string {
    return this.#last === "" ? this.#events.forgotten : this.#last;
  }

  stopped(mark: StopMark | undefined): string {
    const begun = { held: this.#held, events: this.#eventCount };
    const usage = usageOf(streamUsage(this.#request, this, false), this.told);
    return encodeByteText((mark && this.#follower?.stopped(begun, usage, mark)) ?? "");
  }

  errorEvent(rendered: string, error: GatewayError): string {
    const begun = { held: this.#held, events: this.#eventCount };
    return encodeByteText(this.#events.errorEvent(rendered, error, begun));
  }
}

function parsedEdits(edits: Readonly<Record<string, string>>): Json {
  return Object.fromEntries(Object.entries(edits).map(([name, value]) => [name, JSON.parse(value) as unknown]));
}
