// A decoded request: its bytes, and the facts that routing, limits and policies need.
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
import { servedOf } from "./dialects/reported-parts.ts";
import { namesServers } from "./dialects/response/hosted/asked-servers.ts";
import {
  type BodyFacts,
  type Corrections,
  correctionsOf,
  limitOf,
  type MemberRange,
  mayOutlast,
  notKept,
  type RequestFacts,
} from "./facts.ts";
import { readsBeyond } from "./reads-beyond.ts";

/**
 * A request that was checked. The decoder records the facts that every request needs. The text, members and body are
 * only parsed when needed, which most requests never need. A parsed body takes up to thirty times the bytes of its
 * text, and does not count on a memory account. Therefore only the request that was read last keeps its parsed body,
 * and a long request only until the end of the tick.
 */
export class DecodedRequest implements RequestFacts {
  readonly dialect: Dialect;
  readonly operation: Operation;
  /** The body as the client sent it, in valid UTF-8. If the client sent a form, the equivalent JSON. */
  readonly bytes: ByteSpan;
  readonly model: string;
  /** Byte offsets of the value of `model`. Both are 0 if the body was not scanned. */
  readonly modelStart: number;
  readonly modelEnd: number;
  /**
   * Byte offsets of the name of the end user, and of `metadata`. They are 0 if the member is missing or the body was
   * not scanned.
   */
  readonly userStart: number;
  readonly userEnd: number;
  readonly metadataStart: number;
  readonly metadataEnd: number;
  /** Members that tell the model server a user, a cache or a priority. Undefined if there are none. */
  readonly isolating: readonly IsolatedMember[] | undefined;
  readonly stream: boolean;
  readonly streamOptions: BodyFacts["streamOptions"];
  readonly width: number;
  readonly promptTokens: number;
  /** Maximum number of completion tokens. `tokenLimitName` is the name of the member that sets this limit. */
  readonly tokenLimit: number | undefined;
  readonly tokenLimitName: string;
  /** True if unknown members may limit the length of the answer. See `BodyFacts.hasOthers`. */
  readonly hasOthers: boolean;
  /** Changes to the body that every model server needs. Undefined if there are none. */
  readonly corrections: Corrections | undefined;
  readonly hasMedia: boolean;
  readonly store: boolean | null | undefined;
  readonly background: boolean;
  readonly namesKept: boolean;
  readonly maySeal: boolean;
  /** Headers that the client sent with a Messages request over HTTP. */
  messageHeaders: MessageHeaders | undefined;
  /**
   * The stored response or conversation that the request continues. Set once stored items have replaced the reference
   * in the body.
   */
  goesOn: GoesOn | undefined;
  /** The form, if the client sent one. `bytes` are then the equivalent JSON. */
  form: KeptForm | undefined;
  /** The lowest token limit that the request's model servers accept. 0 if the client's limit is sent unchanged. */
  leastLimit = 0;
  /** Positions of the members that make `hasOthers` true. Undefined if their positions were not recorded. */
  readonly unknownMembers: BodyFacts["unknownMembers"];
  /**
   * Values from a body that was parsed for its checks. They are kept, so that the body need not be parsed again later.
   */
  readonly #parsedValues: ParsedValues | undefined;
  #limitHolds: boolean | undefined;
  #otherMembers: Readonly<Record<string, unknown>> | undefined;

  /** Copies `facts`, because the scan reuses that object. */
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
    this.unknownMembers = facts.unknownMembers;
    this.corrections = correctionsOf(dialect, facts);
    this.hasMedia = facts.hasMedia;
    this.store = facts.store;
    this.background = facts.background;
    this.namesKept = dialect.namesKept !== undefined && facts.namesKept;
    this.maySeal = dialect.opened !== undefined && facts.maySeal;
    this.messageHeaders = undefined;
    this.goesOn = undefined;
    this.form = undefined;
    this.#parsedValues = parsed && this.modelEnd === 0 ? parsedValues(parsed.body) : undefined;
    if (parsed) keep({ of: this, ...parsed });
  }

  /** The body as text. */
  get text(): string {
    return readingOf(this).text;
  }

  /** The offsets of the top-level members of the body in `text`. */
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

  /** Returns the end user that the client names. Several members are tried in order. */
  get endUser(): string | undefined {
    if (this.userEnd > 0)
      return textOf(this.#valueAt(this.userStart, this.userEnd)) ?? textOf(this.metadata?.["user_id"]);
    const { safety_identifier: newer, user } = this.#isScanned ? nothing : this.#values;
    return textOf(newer) ?? textOf(user) ?? textOf(this.metadata?.["user_id"]);
  }

  /** Returns `metadata` if it is an object of at most `maxMetadataBytes`. */
  get metadata(): Readonly<Record<string, unknown>> | undefined {
    const { metadataStart: start, metadataEnd: end } = this;
    if (end - start > maxMetadataBytes) return undefined;
    const value = end > 0 ? this.#valueAt(start, end) : this.#isScanned ? undefined : this.#values.metadata;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  }

  valueOf({ name, start, end }: IsolatedMember): unknown {
    return end > 0 ? this.#valueAt(start, end) : this.body[name];
  }

  /** True if the only change that the body needs is an additional `store: false`. */
  get omitsStore(): boolean {
    return this.corrections === notKept && this.store === undefined && this.#isScanned;
  }

  /** True if the request names MCP servers. Such a request was parsed completely for its checks. */
  get namesServers(): boolean {
    return !this.#isScanned && this.#values.namesServers;
  }

  get #values(): ParsedValues {
    return this.#parsedValues ?? parsedValues(this.body);
  }

  get #isScanned(): boolean {
    return this.modelEnd > 0;
  }

  /** Parses the JSON value between these offsets. */
  #valueAt(start: number, end: number): unknown {
    const { buffer, start: first } = this.bytes;
    return JSON.parse(buffer.toString("utf8", first + start, first + end));
  }

  get bodyBytes(): number {
    return this.bytes.length;
  }

  get maxCompletionTokens(): number | undefined {
    const { dialect, tokenLimit } = this;
    if (dialect.generates) return tokenLimit === undefined ? undefined : Math.max(tokenLimit, this.leastLimit);
    return dialect.task ? dialect.task.answerTokens(this.body) : 0;
  }

  /** True if no model server can read a higher token limit from the request than the gateway does. */
  get limitHolds(): boolean {
    if (!this.dialect.generates || !this.hasOthers) return true;
    this.#limitHolds ??= !mayOutlast(this.dialect, this.otherMembers, this.tokenLimit ?? 0);
    return this.#limitHolds;
  }

  /**
   * The members that make `hasOthers` true. If the scan recorded them, only these members are parsed. Otherwise this is
   * the whole body.
   */
  get otherMembers(): Readonly<Record<string, unknown>> {
    if (this.unknownMembers === undefined) return this.body;
    this.#otherMembers ??= parsedMembers(this.bytes, this.unknownMembers);
    return this.#otherMembers;
  }

  /**
   * Reports whether a model server may add to the prompt. This parses the body, so call it only if the reported prompt
   * is longer than the estimate.
   */
  readsBeyond(): boolean {
    return readsBeyond(this.dialect, this.body);
  }

  /** Number of times that the model reads the body. */
  get readings(): number {
    return this.dialect.task ? this.dialect.task.readings(this.body) : 1;
  }

  /** Number of units that are counted in addition to tokens, by kind. Undefined if there are none. */
  get units(): UsageUnits | undefined {
    return this.dialect.task?.units(this.body);
  }

  /** The units of the input. Images are left out, because the model generates them. */
  get unitsRead(): UsageUnits | undefined {
    const { images: _, ...read } = this.units ?? {};
    return Object.keys(read).length === 0 ? undefined : read;
  }

  /** True if the answer consists of bytes that are forwarded to the client as they arrive. */
  get answersBytes(): boolean {
    return this.dialect.task !== undefined && !this.stream && this.dialect.task.answersBytes(this.body);
  }

  /** True if the answer's bytes are text from the model, and not audio. */
  get answersText(): boolean {
    return this.answersBytes && this.dialect.task?.answersText === true;
  }

  /** Returns the service tiers that the request asks for. The body is only parsed if it may name a tier. */
  askedTiers(): readonly string[] {
    if (!this.#isScanned) return this.#values.tiers;
    const { view } = this.bytes;
    // A search of the bytes finds every member for a tier, because the byte scan rejects names with escapes.
    return tierMembers.some((name) => view.includes(`"${name}"`)) ? tiersOf(this.body) : noTiers;
  }
}

interface ParsedValues {
  safety_identifier: unknown;
  user: unknown;
  /** The value of `metadata`. Undefined if it is longer than `maxMetadataBytes`. */
  metadata: unknown;
  namesServers: boolean;
  tiers: readonly string[];
}

function parsedValues(body: Readonly<Record<string, unknown>>): ParsedValues {
  const { safety_identifier, user, metadata } = body;
  const isShort = metadata !== undefined && JSON.stringify(metadata).length <= maxMetadataBytes;
  return {
    safety_identifier: textOf(safety_identifier),
    user: textOf(user),
    metadata: isShort ? metadata : undefined,
    namesServers: namesServers(body),
    tiers: tiersOf(body),
  };
}

function tiersOf(body: Readonly<Record<string, unknown>>): readonly string[] {
  return servedOf(...tierMembers.map((name) => body[name])) ?? noTiers;
}

const tierMembers = ["service_tier", "speed", "inference_geo"] as const;
const noTiers: readonly string[] = [];

/** The stored response or conversation that a request continues, and the items that the request adds. */
export interface GoesOn extends GoesOnFrom {
  /**
   * Id of the preceding response in the store. Null if there is none, or if only this connection has that response. In
   * the latter case, its items are part of `input`.
   */
  readonly keptAfter: string | null;
  /** Items of the request's own input, each with an id. Items that the input refers to are included. */
  readonly input: readonly StoredItem[];
}

/** The parsed parts of a request whose checks required a complete parse. */
export interface ParsedBody {
  text: string;
  members: Members;
  body: Readonly<Record<string, unknown>>;
}

function parsedMembers({ buffer, start: first }: ByteSpan, members: readonly MemberRange[]): Record<string, unknown> {
  const texts = members.map(({ start, end }) => buffer.toString("utf8", first + start, first + end));
  return JSON.parse(`{${texts.join(",")}}`) as Record<string, unknown>;
}

/** The parsed parts of a request's bytes, each created when first needed. */
interface Reading {
  of: DecodedRequest;
  text: string;
  members?: Members;
  body?: Readonly<Record<string, unknown>>;
}

/**
 * Maximum length of `metadata` that is read. OpenAI's API accepts at most sixteen pairs of 64 and 512 characters, so
 * longer metadata is ignored.
 */
const maxMetadataBytes = 64 * 1024;
const nothing: Readonly<Record<string, unknown>> = {};

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Bytes of a body above which its parsed form is dropped at the end of the tick. */
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
