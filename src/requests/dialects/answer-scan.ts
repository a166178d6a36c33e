// Scans a whole answer without parsing it. Most answers can be sent to the client as the model server wrote them.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import {
  afterColon,
  afterName,
  afterNumber,
  afterSpace,
  afterString,
  afterWord,
  bytes,
  closeBrace,
  closeBracket,
  comma,
  fault,
  isDigit,
  isSame,
  load,
  minus,
  numberPassed,
  openBrace,
  openBracket,
  quote,
} from "../../base/text/json-bytes.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { areWholeParts, beginParts, isNamed, notePart, partBegins } from "./scanned-parts.ts";

/** Names of the members that the scan finds, in all API formats. */
const names = [
  ...(["id", "object", "created", "model", "usage", "error", "service_tier"] as const),
  ...(["status", "store", "previous_response_id", "conversation"] as const),
  ...(["type", "content", "stop_reason"] as const),
  ...(["created_at", "completed_at", "incomplete_details", "instructions", "tool_choice", "truncation"] as const),
  ...([
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
  ] as const),
  ...(["max_output_tokens", "max_tool_calls", "background", "metadata", "safety_identifier"] as const),
  ...(["prompt_cache_key"] as const),
  ...(["choices", "output", "tools", "text", "reasoning"] as const),
] as const;
export type AnswerMember = (typeof names)[number];

/** Maximum depth. A single number stores, in one bit for each level, whether the container is an object or an array. */
const maxDepth = 30;

/** For each member, its index in the array of offsets. */
const offsetOf = Object.fromEntries(names.map((name, at) => [name, 2 * at])) as Readonly<Record<AnswerMember, number>>;
/**
 * The first member within which members are searched too. `deepestNoted` is the maximum depth at which they are
 * recorded.
 */
const firstWithin = offsetOf.choices;
const deepestNoted = 5;
/** Names of members by their length, each with its index in the array of offsets. */
const namesOfLength = Array.from({ length: 1 + Math.max(...names.map(({ length }) => length)) }, (_, length) =>
  names.filter((name) => name.length === length).map((name) => ({ name: Buffer.from(name), place: offsetOf[name] })),
);
const [backslash, space, letterN] = [0x5c, 0x20, 0x6e];
const other = -2;

/**
 * Returns the members of an answer that is a valid JSON object. Returns undefined if the answer must be parsed with
 * JSON.parse: it is too long or too deep, repeats a member of the list, or has a name with escapes. Bytes above 127 are
 * not checked.
 */
export function scanAnswer(answer: ByteSpan): ScannedAnswer | undefined {
  if (!load(answer)) return undefined;
  const offsets = new Int32Array(2 * names.length);
  choices = 0;
  messages = 0;
  ends = 0;
  isOddChoice = false;
  beginParts();
  return isJsonObject(answer.length, offsets) ? new ScannedAnswer(answer, offsets) : undefined;
}

/** The members of a scanned answer. All offsets count from the beginning of the answer. */
export class ScannedAnswer {
  /** The usage, if it has exactly the three whole numbers of a chat completion. Undefined if it must be parsed. */
  readonly usage: TokenUsage | undefined;
  /** True if each choice has a message with text and without calls, and ended with `stop` or `length`. */
  readonly hasPlainMessages: boolean;
  /** True if all parts of a response (items, tools, `text` and `reasoning`) have the members that clients need. */
  readonly hasWholeParts: boolean;
  readonly #answer: ByteSpan;
  /** Start and end of each member's value, in the order of `names`. Both are 0 if the member is missing. */
  readonly #offsets: Int32Array;

  /** `answer` must be the text that is loaded. */
  constructor(answer: ByteSpan, offsets: Int32Array) {
    this.#answer = answer;
    this.#offsets = offsets;
    this.hasPlainMessages = choices > 0 && isCompleteSoFar() && !isOddChoice;
    this.hasWholeParts = areWholeParts();
    this.usage = countedUsage(this.startOf("usage"));
  }

  /** Returns the offset at which the member's value begins, or 0 if the member is missing. */
  startOf(member: AnswerMember): number {
    return this.#offsets[offsetOf[member]] as number;
  }

  endOf(member: AnswerMember): number {
    return this.#offsets[offsetOf[member] + 1] as number;
  }

  /** Returns the first byte of the member's value, or 0 if the member is missing. */
  firstByteOf(member: AnswerMember): number {
    const start = this.startOf(member);
    return start === 0 ? 0 : this.#byteAt(start);
  }

  /** Reports whether the member's value is this text. False if the text has escapes or characters beyond ASCII. */
  isText(member: AnswerMember, expected: string): boolean {
    const start = this.startOf(member);
    const { length } = expected;
    if (this.firstByteOf(member) !== quote || this.endOf(member) - start !== length + 2) return false;
    for (let i = 0; i < length; i++) {
      const code = expected.charCodeAt(i);
      if (this.#byteAt(start + 1 + i) !== code || code === backslash || code > 0x7f) return false;
    }
    return true;
  }

  /** Reports whether the member is missing or null. */
  isNothing(member: AnswerMember): boolean {
    const first = this.firstByteOf(member);
    return first === 0 || first === letterN;
  }

  /** Reports whether the member is a list whose first item is an object. */
  hasObjects(member: AnswerMember): boolean {
    if (this.firstByteOf(member) !== openBracket) return false;
    let at = this.startOf(member) + 1;
    while (this.#byteAt(at) <= space) at++;
    return this.#byteAt(at) === openBrace;
  }

  /** Reports whether the member's value contains these bytes. */
  holds(member: AnswerMember, bytes: Buffer): boolean {
    const { buffer, start: from } = this.#answer;
    return buffer.subarray(from + this.startOf(member), from + this.endOf(member)).includes(bytes);
  }

  /** Returns the offset after the opening brace. New members can be inserted there. */
  get within(): number {
    let at = 0;
    while (this.#byteAt(at) !== openBrace) at++;
    return at + 1;
  }

  parsedValueOf(member: AnswerMember): unknown {
    const start = this.startOf(member);
    if (start === 0) return undefined;
    const { buffer, start: from } = this.#answer;
    // The value is decoded as UTF-8 and not as byte text, because the name of a tier is stored and decides prices.
    return JSON.parse(buffer.toString("utf8", from + start, from + this.endOf(member)));
  }

  #byteAt(place: number): number {
    return this.#answer.buffer[this.#answer.start + place] as number;
  }
}

const promptName = Buffer.from("prompt_tokens");
const completionName = Buffer.from("completion_tokens");
const totalName = Buffer.from("total_tokens");

/**
 * Returns the usage if it has only the usual counts. `start` is its offset in the loaded text, or 0 if the answer has
 * no usage.
 */
function countedUsage(start: number): TokenUsage | undefined {
  if (start === 0 || bytes[start] !== openBrace) return undefined;
  let promptTokens = -1;
  let completionTokens = -1;
  let totalTokens = -1;
  for (let at = afterSpace(start + 1); ; at = afterSpace(at + 1)) {
    const nameEnd = afterName(at);
    if (nameEnd === fault) return undefined;
    const value = afterColon(nameEnd);
    if (!isDigit(bytes[value] as number)) return undefined;
    const end = afterNumber(value);
    const count = numberPassed();
    if (!Number.isSafeInteger(count)) return undefined;
    if (isSame(promptName, at + 1, nameEnd - 1)) promptTokens = count;
    else if (isSame(completionName, at + 1, nameEnd - 1)) completionTokens = count;
    else if (isSame(totalName, at + 1, nameEnd - 1)) totalTokens = count;
    // An unknown member may report a part of the tokens, as in DeepSeek's usage, so the usage must be parsed.
    else return undefined;
    at = afterSpace(end);
    if (bytes[at] !== comma) break;
  }
  if (promptTokens < 0 || completionTokens < 0 || totalTokens < 0) return undefined;
  // A larger total may include reasoning tokens in addition to both counts, so the usage must be parsed.
  if (totalTokens > promptTokens + completionTokens) return undefined;
  return { promptTokens, completionTokens, estimated: false };
}

/**
 * Numbers of choices, messages and usual finish reasons in the loaded text. A choice is odd if it lacks a message or a
 * usual finish reason, or if it has more than text.
 */
let choices = 0;
let messages = 0;
let ends = 0;
let isOddChoice = false;
const choiceDepth = 3;
const [messageName, errorName, endName] = [Buffer.from("message"), Buffer.from("error"), Buffer.from("finish_reason")];
const [callsName, contentName] = [Buffer.from("tool_calls"), Buffer.from("content")];

function isCompleteSoFar(): boolean {
  return messages === choices && ends === choices;
}

/** Called when a value begins. The value is that of `member` itself or is inside it. */
function beginsWithin(member: number, depth: number, first: number): void {
  if (member !== offsetOf.choices) partBegins((member - firstWithin) / 2, depth, first);
  else if (depth === choiceDepth - 1) {
    isOddChoice ||= !isCompleteSoFar();
    choices++;
  }
}

/** Called for a member of an object inside `member`. Its name begins at `at`, and its value at `value`. */
function noteWithin(member: number, depth: number, at: number, value: number): void {
  if (member === offsetOf.choices) noteChoice(depth, at, value);
  else notePart((member - firstWithin) / 2, depth, at, value);
}

/** Records a member of a choice, or of the message in a choice. */
function noteChoice(depth: number, at: number, value: number): void {
  const first = bytes[value] as number;
  if (depth === choiceDepth) {
    if (isNamed(messageName, at)) {
      if (first === openBrace) messages++;
      else isOddChoice = true;
    } else if (isNamed(errorName, at)) isOddChoice ||= first !== letterN;
    else if (isNamed(endName, at)) {
      if (first === quote && usualEnds.some((end) => isNamed(end, value))) ends++;
      else isOddChoice = true;
    }
  } else if (depth !== choiceDepth + 1) return;
  else if (isNamed(callsName, at)) {
    isOddChoice ||= first === openBracket && bytes[afterSpace(value + 1)] !== closeBracket;
  } else if (isNamed(contentName, at)) isOddChoice ||= first === openBracket;
}

const usualEnds = ["stop", "length"].map((end) => Buffer.from(end));

/** Checks the JSON syntax strictly, and records the positions of the members. */
function isJsonObject(length: number, offsets: Int32Array): boolean {
  let at = afterSpace(0);
  if (bytes[at] !== openBrace) return false;
  let depth = 0;
  /** One bit for each open container, the innermost in the lowest bit. 1 stands for an object, 0 for an array. */
  let objects = 0;
  /** Index in `offsets` of the current top-level member, or `other`. */
  let member = other;
  for (;;) {
    const first = bytes[at] as number;
    if (member >= firstWithin) beginsWithin(member, depth, first);
    if (first === openBrace || first === openBracket) {
      const isObject = first === openBrace;
      if (++depth > maxDepth) return false;
      objects = (objects << 1) | (isObject ? 1 : 0);
      at = afterSpace(at + 1);
      if (bytes[at] !== (isObject ? closeBrace : closeBracket)) {
        if (isObject) {
          if (depth === 1) member = memberAt(at);
          const nameAt = at;
          at = valueAfterName(at);
          if (at < 0 || member === fault || !begins(offsets, member, depth, at)) return false;
          if (member >= firstWithin && depth <= deepestNoted) noteWithin(member, depth, nameAt, at);
        }
        continue;
      }
    } else {
      at = afterScalar(first, at);
      if (at < 0) return false;
      if (depth === 1 && member >= 0) offsets[member + 1] = at;
      at = afterSpace(at);
    }
    for (;;) {
      const isObject = (objects & 1) === 1;
      const next = bytes[at];
      if (next === comma) {
        at = afterSpace(at + 1);
        if (isObject) {
          if (depth === 1) member = memberAt(at);
          const nameAt = at;
          at = valueAfterName(at);
          if (at < 0 || member === fault || !begins(offsets, member, depth, at)) return false;
          if (member >= firstWithin && depth <= deepestNoted) noteWithin(member, depth, nameAt, at);
        }
        break;
      }
      if (next !== (isObject ? closeBrace : closeBracket)) return false;
      at++;
      objects >>>= 1;
      if (--depth === 1 && member >= 0) offsets[member + 1] = at;
      at = afterSpace(at);
      if (depth === 0) return at === length;
    }
  }
}

/** Called when the value of a member begins. Returns false if the answer already had this member. */
function begins(offsets: Int32Array, member: number, depth: number, at: number): boolean {
  if (depth !== 1 || member < 0) return true;
  if (offsets[member] !== 0) return false;
  offsets[member] = at;
  return true;
}

/**
 * Returns the index in `offsets` of the member whose name begins at `at`. Returns `other` for any other name, and
 * `fault` for a name with escapes.
 */
function memberAt(at: number): number {
  let end = at + 1;
  for (let code = bytes[end] as number; code !== quote; code = bytes[++end] as number) {
    if (code < 0x20 || code === backslash) return fault;
  }
  const length = end - at - 1;
  const candidates = length < namesOfLength.length ? namesOfLength[length] : undefined;
  if (candidates === undefined) return other;
  for (let i = 0; i < candidates.length; i++) {
    const { name, place } = candidates[i] as (typeof candidates)[number];
    if (isSame(name, at + 1, end)) return place;
  }
  return other;
}

/** Returns the offset at which the value of a member begins. */
function valueAfterName(from: number): number {
  if (bytes[from] !== quote) return fault;
  const end = afterString(from);
  return end < 0 ? fault : afterColon(end);
}

function afterScalar(first: number, at: number): number {
  if (first === quote) return afterString(at);
  if (first === minus || isDigit(first)) return afterNumber(at);
  if (first === 0x74) return afterWord("true", at);
  if (first === 0x66) return afterWord("false", at);
  return first === 0x6e ? afterWord("null", at) : fault;
}
