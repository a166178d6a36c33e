// A request as it was decoded: what the rest of its way is made of.
import type { ByteSpan } from "../base/bytes/byte-span.ts";
import { type Members, scanObject } from "../base/text/json-text.ts";
import type { Operation } from "../domain/models/engine.ts";
import type { RequestFacts, RequestMarks } from "./facts.ts";

/**
 * Checked. What every request needs of it was noted while it was; text, members and body are made when somebody asks for
 * them, as for most requests nobody does.
 */
export class DecodedRequest implements RequestFacts, RequestMarks {
  readonly operation: Operation;
  /** The body as the client sent it; valid UTF-8. */
  readonly bytes: ByteSpan;
  readonly model: string;
  readonly modelStart: number;
  readonly modelEnd: number;
  readonly stream: boolean;
  readonly streamOptions: RequestMarks["streamOptions"];
  readonly width: number;
  readonly promptTokens: number;
  readonly tokenLimit: number | undefined;
  readonly tokenLimitName: RequestMarks["tokenLimitName"];
  readonly corrections: RequestMarks["corrections"];
  readonly hasMedia: boolean;
  readonly store: boolean | null | undefined;
  #text: string | undefined;
  #members: Members | undefined;
  #body: Readonly<Record<string, unknown>> | undefined;

  /** `marks` are copied. */
  constructor(operation: Operation, bytes: ByteSpan, marks: RequestMarks, parsed?: ParsedBody) {
    this.operation = operation;
    this.bytes = bytes;
    this.model = marks.model;
    this.modelStart = marks.modelStart;
    this.modelEnd = marks.modelEnd;
    this.stream = marks.stream;
    this.streamOptions = marks.streamOptions;
    this.width = marks.width;
    this.promptTokens = marks.promptTokens;
    this.tokenLimit = marks.tokenLimit;
    this.tokenLimitName = marks.tokenLimitName;
    this.corrections = marks.corrections;
    this.hasMedia = marks.hasMedia;
    this.store = marks.store;
    this.#text = parsed?.text;
    this.#members = parsed?.members;
    this.#body = parsed?.body;
  }

  /** The client's text. */
  get text(): string {
    this.#text ??= this.bytes.text;
    return this.#text;
  }

  /** Where its top-level members stand in `text`. */
  get members(): Members {
    this.#members ??= scanObject(this.text);
    return this.#members;
  }

  get body(): Readonly<Record<string, unknown>> {
    this.#body ??= JSON.parse(this.text) as Record<string, unknown>;
    return this.#body;
  }

  get bodyBytes(): number {
    return this.bytes.length;
  }

  get maxCompletionTokens(): number | undefined {
    return this.operation === "embedding" ? 0 : this.tokenLimit;
  }
}

/** Of a request that was parsed to be checked. */
export interface ParsedBody {
  text: string;
  members: Members;
  body: Readonly<Record<string, unknown>>;
}
