// Forwards a whole answer that is too long for memory. Such an answer is a list of items. The members beside the list
// are small and are edited while they pass.
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { ByteSpan, withoutMark } from "../../base/bytes/byte-span.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Model } from "../../domain/models/model.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { AskedRequest } from "./answer.ts";
import { maxAnswerBytes } from "./answer-bound.ts";
import { malformed } from "./malformed.ts";

type Json = Readonly<Record<string, unknown>>;

/** Describes how long answers of a format are forwarded. */
export interface LongFormat {
  /** Returns the number of items that an answer must have, or undefined if any number is allowed. */
  items(request: AskedRequest): number | undefined;
  /**
   * Converts an item, in place, to the encoding that the request asks for, and reports whether the item changed. Throws
   * `upstream_error`. If items stay as they are, `encoder` returns undefined.
   */
  encoder(request: AskedRequest): ((item: unknown) => boolean) | undefined;
  /**
   * Returns JSON that replaces the value of a member in the answer, or undefined if the member stays. `value` is
   * undefined for a member that is still missing at the end.
   */
  edited(name: string, value: unknown, request: AskedRequest, model: LongModel): string | undefined;
  usage(members: Json, items: number, request: AskedRequest, model: LongModel): TokenUsage;
}

/** The model that answers, and the id that the gateway gives to an answer without an id. */
export interface LongModel extends Pick<Model, "id" | "context"> {
  readonly answerId: string;
}

/** Names of the members that are parsed before they are forwarded. */
const readMembers: ReadonlySet<string> = new Set(["id", "model", "object", "usage", "error", "service_tier"]);
/** Maximum length in bytes of each of these members, and of any member name. */
const maxMemberBytes = 64 * 1024;
/**
 * Maximum length in bytes of an item that is re-encoded. This is twice the length of an embedding of 16,384 numbers.
 */
const maxItemBytes = 1024 * 1024;

const [quote, backslash, comma, colon, space] = [0x22, 0x5c, 0x2c, 0x3a, 0x20];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

/** The next token that the syntax allows at the top level of the answer. */
type Next = "answer" | "name" | "colon" | "value" | "end of value" | "nothing";

/**
 * A sink for the bytes of the answer, and a source of the edited answer. This class reads each byte once, in pieces of
 * any size. It checks only the syntax that it needs to find members and items. Other syntax errors reach the client.
 */
export class LongAnswer implements BodySource, BodySink {
  readonly #format: LongFormat;
  readonly #request: AskedRequest;
  readonly #model: LongModel;
  readonly #encode: ((item: unknown) => boolean) | undefined;
  readonly #maxBytes: number;
  /** The source of the bytes that follow the beginning of the answer. */
  readonly #source: BodySource;
  #sink: BodySink | undefined;
  /** Output that waits until `flow` sets the sink. */
  #waiting: ByteSpan[] = [];
  #outcome: { error?: unknown } | undefined;
  #isOver = false;
  #isPaused = false;

  #bytes = 0;
  #next: Next = "answer";
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Name of the top-level member whose value is being read now. */
  #member = "";
  /** The part that is being collected: a name (which is also forwarded), a member that will be parsed, or an item. */
  #collecting: "name" | "member" | "item" | undefined;
  #collected: Buffer[] = [];
  #collectedBytes = 0;
  #hasList = false;
  /** True while the value being read is the list of items. */
  #isList = false;
  /** Position of the first byte in the current piece that is neither forwarded nor collected yet. */
  #from = 0;
  readonly #members: Record<string, unknown> = {};
  #items = 0;

  /**
   * Starts to forward the answer. Returns undefined if the answer does not begin like one with a list. Throws
   * `upstream_error` if no list can follow.
   */
  static begin(
    first: ByteSpan,
    source: BodySource,
    format: LongFormat,
    request: AskedRequest,
    model: LongModel,
  ): LongAnswer | undefined {
    const answer = new LongAnswer(source, format, request, model);
    answer.#read(withoutMark(first));
    const { error } = answer.#members;
    return answer.#hasList && (error === undefined || error === null) ? answer : undefined;
  }

  private constructor(source: BodySource, format: LongFormat, request: AskedRequest, model: LongModel) {
    this.#source = source;
    this.#format = format;
    this.#request = request;
    this.#model = model;
    this.#encode = format.encoder(request);
    this.#maxBytes = maxAnswerBytes(request, model);
  }

  /** Returns the usage that the answer has reported so far. */
  get usage(): TokenUsage {
    return this.#format.usage(this.#members, this.#items, this.#request, this.#model);
  }

  flow(sink: BodySink): void {
    this.#sink = sink;
    for (const piece of this.#waiting.splice(0)) if (!this.#isOver) sink.data(piece);
    if (this.#isOver) return;
    if (!this.#outcome) {
      if (!this.#isPaused) this.#source.resume();
    } else if ("error" in this.#outcome) sink.fail(this.#outcome.error);
    else sink.end();
  }

  pause(): void {
    this.#isPaused = true;
    this.#source.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#source.resume();
  }

  cancel(): void {
    this.#isOver = true;
    this.#source.cancel();
  }

  data(bytes: ByteSpan): void {
    if (this.#isOver || this.#outcome) return;
    try {
      this.#read(bytes);
    } catch (error) {
      this.#source.cancel();
      this.fail(error);
    }
  }

  end(): void {
    if (this.#isOver || this.#outcome) return;
    const wanted = this.#format.items(this.#request);
    if (this.#next !== "nothing") this.fail(malformed("JSON that ends early"));
    else if (wanted !== undefined && wanted !== this.#items) {
      this.fail(malformed(`${this.#items} items for ${wanted} inputs`));
    } else this.#settle({});
  }

  fail(error: unknown): void {
    this.#settle({ error });
  }

  #settle(outcome: { error?: unknown }): void {
    if (this.#isOver || this.#outcome) return;
    this.#outcome = outcome;
    if (!this.#sink) return;
    this.#isOver = true;
    if ("error" in outcome) this.#sink.fail(outcome.error);
    else this.#sink.end();
  }

  #pass(buffer: Buffer, start: number, end: number): void {
    if (end === start || this.#isOver) return;
    const piece = new ByteSpan(buffer, start, end);
    if (this.#sink) this.#sink.data(piece);
    else this.#waiting.push(piece);
  }

  /** Forwards those bytes of the current piece up to `end` that are neither forwarded nor collected yet. */
  #passTo(buffer: Buffer, end: number): void {
    this.#pass(buffer, this.#from, end);
    this.#from = end;
  }

  #passText(text: string): void {
    const bytes = Buffer.from(text);
    this.#pass(bytes, 0, bytes.length);
  }

  #read({ buffer, start, end }: ByteSpan): void {
    this.#bytes += end - start;
    if (this.#bytes > this.#maxBytes) {
      throw new GatewayError("upstream_error", "The model server sent more than the request can use.", {
        detail: `more than ${this.#maxBytes} bytes`,
      });
    }
    this.#from = start;
    for (let at = start; at < end; at++) {
      const code = buffer[at] as number;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === backslash) this.#isEscaped = true;
        else if (code === quote) {
          this.#isInString = false;
          if (this.#collecting === "name") this.#tookName(buffer, at);
        }
      } else if (code > space) {
        this.#begins(code, buffer, at);
        this.#readToken(code, buffer, at);
      }
    }
    if (this.#collecting) this.#collect(buffer, end);
    else this.#passTo(buffer, end);
  }

  /** Starts to collect at the beginning of a member or item that must be parsed. */
  #begins(code: number, buffer: Buffer, at: number): void {
    if (this.#next === "nothing") throw malformed("something behind the JSON");
    if (this.#next === "answer" && code !== openBrace) throw malformed("no JSON object");
    if (this.#next === "value") {
      this.#next = "end of value";
      this.#isList = this.#member === this.#request.dialect.answerList && code === openBracket;
      if (this.#isList && this.#hasList) throw malformed("a list that appears twice");
      this.#hasList ||= this.#isList;
      if (readMembers.has(this.#member)) this.#collectFrom("member", buffer, at);
    } else if (this.#isItem(code)) {
      this.#items++;
      if (!this.#encode) return;
      if (code !== openBrace) throw malformed("an item that is no object");
      this.#collectFrom("item", buffer, at);
    }
  }

  /** Reads one byte that is not inside a string. */
  #readToken(code: number, buffer: Buffer, at: number): void {
    switch (code) {
      case quote:
        this.#isInString = true;
        if (this.#depth === 1 && this.#next === "name") this.#collectFrom("name", buffer, at);
        break;
      case openBrace:
      case openBracket:
        if (this.#depth++ === 0) this.#next = "name";
        break;
      case closeBrace:
      case closeBracket:
        if (this.#depth === 1) this.#close(buffer, at);
        if (--this.#depth === 2 && this.#collecting === "item") this.#tookItem(buffer, at + 1);
        break;
      case colon:
        if (this.#depth === 1 && this.#next === "colon") this.#next = "value";
        break;
      case comma:
        if (this.#depth !== 1) break;
        if (this.#collecting === "member") this.#tookMember(buffer, at);
        this.#next = "name";
        break;
    }
  }

  /** Ends the answer at its closing brace, and adds the members that are missing. */
  #close(buffer: Buffer, at: number): void {
    if (this.#collecting === "member") this.#tookMember(buffer, at);
    this.#passTo(buffer, at);
    for (const name of readMembers) {
      if (name in this.#members) continue;
      const json = this.#format.edited(name, undefined, this.#request, this.#model);
      if (json !== undefined) this.#passText(`,${JSON.stringify(name)}:${json}`);
    }
    this.#next = "nothing";
  }

  /** Reports whether an item of the list begins here. */
  #isItem(code: number): boolean {
    if (!this.#isList || this.#depth !== 2 || this.#collecting) return false;
    return code === openBrace || code === openBracket || code === quote;
  }

  #collectFrom(what: "name" | "member" | "item", buffer: Buffer, at: number): void {
    this.#passTo(buffer, at);
    this.#collecting = what;
  }

  #collect(buffer: Buffer, end: number): void {
    const start = this.#from;
    this.#from = end;
    if (end === start) return;
    this.#collectedBytes += end - start;
    const most = this.#collecting === "item" ? maxItemBytes : maxMemberBytes;
    if (this.#collectedBytes > most) throw malformed(`a ${this.#collecting} of more than ${most} bytes`);
    this.#collected.push(Buffer.from(buffer.subarray(start, end)));
  }

  #taken(buffer: Buffer, end: number): string {
    this.#collect(buffer, end);
    const text = Buffer.concat(this.#collected).toString("utf8");
    this.#collected = [];
    this.#collectedBytes = 0;
    this.#collecting = undefined;
    return text;
  }

  /** `at` is the position of the closing quote. */
  #tookName(buffer: Buffer, at: number): void {
    const text = this.#taken(buffer, at);
    this.#passText(text);
    this.#member = String(parsed(`${text}"`));
    if (readMembers.has(this.#member) && this.#member in this.#members) throw malformed("a field that appears twice");
    this.#next = "colon";
  }

  #tookMember(buffer: Buffer, end: number): void {
    const text = this.#taken(buffer, end);
    const value = parsed(text);
    this.#members[this.#member] = value;
    if (this.#member === "error" && value !== null && this.#sink)
      throw malformed("an error in the middle of an answer");
    this.#passText(this.#format.edited(this.#member, value, this.#request, this.#model) ?? text);
  }

  #tookItem(buffer: Buffer, end: number): void {
    const text = this.#taken(buffer, end);
    const item = parsed(text);
    this.#passText(this.#encode?.(item) ? JSON.stringify(item) : text);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed("no JSON");
  }
}
