// A request as it was decoded: what the rest of its way is made of.
import type { ByteSpan } from "../base/bytes/byte-span.ts";
import { type Members, scanObject } from "../base/text/json-text.ts";
import type { IsolatedMember } from "../domain/models/isolation.ts";
import type { MessageHeaders } from "../domain/models/message-headers.ts";
import type { Operation } from "../domain/models/operation.ts";
import type { KeptForm } from "../domain/models/sent-form.ts";
import type { StoredItem } from "../domain/models/stored-response.ts";
import type { UsageUnits } from "../domain/usage/usage-parts.ts";
import type { GoesOnFrom } from "./dialects/answer.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { namesServers } from "./dialects/response/hosted/asked-servers.ts";
import { servedOf } from "./dialects/told-parts.ts";
import {
  type BodyFacts,
  type Corrections,
  correctionsOf,
  limitOf,
  mayOutlast,
  notKept,
  type RequestFacts,
} from "./facts.ts";
import { readsBeyond } from "./reads-beyond.ts";

/**
 * Checked. What every request needs of it was noted while it was; text, members and body are made when somebody asks for
 * them, as for most requests nobody does. A tree takes up to thirty times the bytes that it is of, and they are on nobody's
 * account: so they are kept for the request alone that was last asked for them, and a long one's not beyond the turn.
 */
export class DecodedRequest implements RequestFacts {
  readonly dialect: Dialect;
  readonly operation: Operation;
  /** The body as the client sent it; valid UTF-8. */
  readonly bytes: ByteSpan;
  readonly model: string;
  /** Offsets of its value in the bytes; both 0 where nobody looked. */
  readonly modelStart: number;
  readonly modelEnd: number;
  /** The same of what it says of its end user, and of `metadata`. */
  readonly userStart: number;
  readonly userEnd: number;
  readonly metadataStart: number;
  readonly metadataEnd: number;
  /** Members that name its user, or a cache, or a turn, to the model server; undefined where none is there. */
  readonly isolating: readonly IsolatedMember[] | undefined;
  readonly stream: boolean;
  readonly streamOptions: BodyFacts["streamOptions"];
  readonly width: number;
  readonly promptTokens: number;
  /** The most tokens of the completion, by the name of the member that counts where both are there. */
  readonly tokenLimit: number | undefined;
  readonly tokenLimitName: string;
  /** See `BodyFacts`. */
  readonly hasOthers: boolean;
  /** Undefined where there are none. */
  readonly corrections: Corrections | undefined;
  readonly hasMedia: boolean;
  readonly store: boolean | null | undefined;
  readonly background: boolean;
  readonly namesKept: boolean;
  readonly maySeal: boolean;
  /** What its client said in headers, of a request of Messages that came by HTTP. */
  messageHeaders: MessageHeaders | undefined;
  /** Set by whoever put what is kept into the body, in the place of what names it. */
  goesOn: GoesOn | undefined;
  /** The form that it came as, in place of the bytes: those are the JSON that says the same. */
  form: KeptForm | undefined;
  #limitHolds: boolean | undefined;

  /** `facts` are copied: they may be lent. */
  constructor(dialect: Dialect, bytes: ByteSpan, facts: BodyFacts, parsed?: ParsedBody) {
    this.dialect = dialect;
    this.operation = dialect.operation;
    this.bytes = bytes;
    this.model = facts.model;
    this.modelStart = facts.modelStart;
    this.modelEnd = facts.modelEnd;
    this.userStart = facts.userStart;
    this.userEnd = facts.userEnd;
    this.metadataStart = facts.metadataStart;
    this.metadataEnd = facts.metadataEnd;
    this.isolating = facts.isolating;
    const newerLimit = limitOf(facts.newerLimit);
    this.stream = (dialect.generates || dialect.task !== undefined) && facts.stream;
    this.streamOptions = facts.streamOptions;
    this.width = dialect.width(facts.choices, facts.bestOf, facts.prompts);
    this.promptTokens = facts.promptTokens;
    this.tokenLimit = newerLimit ?? limitOf(facts.olderLimit);
    this.tokenLimitName = (newerLimit === undefined ? dialect.limitMembers[1] : undefined) ?? dialect.limitMembers[0];
    this.hasOthers = facts.hasOthers;
    this.corrections = correctionsOf(dialect, facts);
    this.hasMedia = facts.hasMedia;
    this.store = facts.store;
    this.background = facts.background;
    this.namesKept = dialect.namesKept !== undefined && facts.namesKept;
    this.maySeal = dialect.opened !== undefined && facts.maySeal;
    this.messageHeaders = undefined;
    this.goesOn = undefined;
    this.form = undefined;
    if (parsed) keep({ of: this, ...parsed });
  }

  /** The client's text. */
  get text(): string {
    return readingOf(this).text;
  }

  /** Where its top-level members stand in `text`. */
  get members(): Members {
    const reading = readingOf(this);
    reading.members ??= scanObject(reading.text);
    return reading.members;
  }

  get body(): Readonly<Record<string, unknown>> {
    const reading = readingOf(this);
    reading.body ??= JSON.parse(reading.text) as Record<string, unknown>;
    return reading.body;
  }

  /** The end user that the client names, in the first of the members for that. */
  get endUser(): string | undefined {
    if (this.userEnd > 0)
      return textOf(this.#valueAt(this.userStart, this.userEnd)) ?? textOf(this.metadata?.["user_id"]);
    const { safety_identifier: newer, user } = this.#isScanned ? nothing : this.body;
    return textOf(newer) ?? textOf(user) ?? textOf(this.metadata?.["user_id"]);
  }

  /** `metadata`, where it is an object, and not longer than it could be meant. */
  get metadata(): Readonly<Record<string, unknown>> | undefined {
    const { metadataStart: start, metadataEnd: end } = this;
    if (end - start > maxMetadataBytes) return undefined;
    const value = end > 0 ? this.#valueAt(start, end) : this.#isScanned ? undefined : this.body["metadata"];
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  }

  valueOf({ name, start, end }: IsolatedMember): unknown {
    return end > 0 ? this.#valueAt(start, end) : this.body[name];
  }

  /** Whether all that has to be corrected is that it does not say that it is not to be kept. */
  get leavesStoreUnsaid(): boolean {
    return this.corrections === notKept && this.store === undefined && this.#isScanned;
  }

  /** True if the request names MCP servers. Such a request was parsed for its checks. */
  get namesServers(): boolean {
    return !this.#isScanned && namesServers(this.body);
  }

  get #isScanned(): boolean {
    return this.modelEnd > 0;
  }

  /** The value of JSON that stands there. */
  #valueAt(start: number, end: number): unknown {
    const { buffer, start: first } = this.bytes;
    return JSON.parse(buffer.toString("utf8", first + start, first + end));
  }

  get bodyBytes(): number {
    return this.bytes.length;
  }

  get maxCompletionTokens(): number | undefined {
    const { dialect } = this;
    if (dialect.generates) return this.tokenLimit;
    return dialect.task ? dialect.task.answerTokens(this.body) : 0;
  }

  /** True if no model server can read a longer limit of the answer in the request. */
  get limitHolds(): boolean {
    if (!this.dialect.generates || !this.hasOthers) return true;
    this.#limitHolds ??= !mayOutlast(this.dialect, this.body, this.tokenLimit ?? 0);
    return this.#limitHolds;
  }

  /** Parses the body: only for a request that was reported to be longer than it is. */
  readsBeyond(): boolean {
    return readsBeyond(this.dialect, this.body);
  }

  /** How often a model reads what stands in the body once. */
  get readings(): number {
    return this.dialect.task ? this.dialect.task.readings(this.body) : 1;
  }

  /** Counted beside tokens; undefined where nothing is. */
  get units(): UsageUnits | undefined {
    return this.dialect.task?.units(this.body);
  }

  /** Those of them that a model has taken in before it answers: what it makes is not among them. */
  get unitsRead(): UsageUnits | undefined {
    const { images: _, ...read } = this.units ?? {};
    return Object.keys(read).length === 0 ? undefined : read;
  }

  /** Whether its answer is bytes that go to the client as they come. */
  get answersBytes(): boolean {
    return this.dialect.task !== undefined && !this.stream && this.dialect.task.answersBytes(this.body);
  }

  /** Whether those bytes are a text that the model says, and no sound. */
  get answersText(): boolean {
    return this.answersBytes && this.dialect.task?.saysText === true;
  }

  /** The body is parsed only where it may name one. */
  askedTiers(): readonly string[] {
    const { view } = this.bytes;
    // A body with an escaped name is not read in one pass.
    if (this.#isScanned && !tierMembers.some((name) => view.includes(`"${name}"`))) return noTiers;
    return servedOf(...tierMembers.map((name) => this.body[name])) ?? noTiers;
  }
}

const tierMembers = ["service_tier", "speed", "inference_geo"] as const;
const noTiers: readonly string[] = [];

/** What of the things that are kept here a request goes on from, and what it adds itself. */
export interface GoesOn extends GoesOnFrom {
  /** The response before it, where that is in the store; one that its connection alone holds is part of `input`. */
  readonly keptAfter: string | null;
  /** The items of its own input, each with an id, those that it names included. */
  readonly input: readonly StoredItem[];
}

/** What was made of a request that had to be parsed to be checked. */
export interface ParsedBody {
  text: string;
  members: Members;
  body: Readonly<Record<string, unknown>>;
}

/** What was made of a request's bytes. */
interface Reading {
  of: DecodedRequest;
  text: string;
  members?: Members;
  body?: Readonly<Record<string, unknown>>;
}

/** Sixteen pairs of 64 and 512 characters are the most that OpenAI's API takes: what is far longer is not looked into. */
const maxMetadataBytes = 64 * 1024;
const nothing: Readonly<Record<string, unknown>> = {};

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A shorter one may stay until the next. */
const longBytes = 64 * 1024;
let last: Reading | undefined;
let endIsDue = false;

function readingOf(request: DecodedRequest): Reading {
  return last?.of === request ? last : keep({ of: request, text: request.bytes.text });
}

function keep(reading: Reading): Reading {
  last = reading;
  if (reading.of.bytes.length > longBytes && !endIsDue) {
    endIsDue = true;
    setImmediate(() => {
      endIsDue = false;
      last = undefined;
    });
  }
  return reading;
}
