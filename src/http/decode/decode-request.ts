// Decodes the body of an inference request: in one pass over its bytes where it is as most are, parsed and checked where it is not.
import { isAscii, isUtf8 } from "node:buffer";
import { type ByteSpan, withoutMark } from "../../base/bytes/byte-span.ts";
import { fieldError } from "../../base/errors.ts";
import { afterSpace, isSame, latin1, load, textAt } from "../../base/text/json-bytes.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import { dialects } from "../../dialects/dialects.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { DecodedRequest } from "../../inference/decoded-request.ts";
import { asksForUsage, type Corrections, marksOf, newerLimitAlone, type RequestMarks } from "../../inference/facts.ts";
import { noTokenLimit } from "../../wire/parts.ts";
import { type BodyLimits, mostNames, parseBody } from "../content/body.ts";
import { FieldNames, namesOf } from "./field-names.ts";
import { ends, found, items, kindAt, numbers, scanBody, starts } from "./request-scan.ts";
import {
  arrayKind,
  bodyRule,
  falseKind,
  type MemberUses,
  noKind,
  nullKind,
  numberKind,
  textKind,
  trueKind,
  type ValueRule,
} from "./scan-rule.ts";
import { shapeFor, validate } from "./validation.ts";

export interface RequestLimits extends BodyLimits {
  messages: number;
}

/** Throws a GatewayError. */
export function decodeRequest(operation: Operation, sent: ByteSpan, limits: RequestLimits): DecodedRequest {
  const bytes = withoutMark(sent);
  const dialect = dialects[operation];
  const marks = marksIn(dialect, bytes, limits);
  return marks ? new DecodedRequest(dialect, bytes, marks) : parsedRequest(operation, sent, limits);
}

/** Whatever it is. Throws a GatewayError. */
export function parsedRequest(operation: Operation, sent: ByteSpan, limits: RequestLimits): DecodedRequest {
  const parsed = parseBody(sent, limits);
  const { bytes, body } = parsed;
  const { messages } = body;
  if (Array.isArray(messages) && messages.length > limits.messages) {
    const got = `an array of ${messages.length} items`;
    throw fieldError("messages", `must be an array of 1 to ${limits.messages} items (got ${got}).`);
  }
  const dialect = dialects[operation];
  fieldNames().require(shapeFor(dialect.schema), body);
  validate(dialect.schema, body);
  return new DecodedRequest(dialect, bytes, marksOf(dialect, body), parsed);
}

const model = 0;
const stream = 1;
const streamOptions = 2;
const choices = 3;
const bestOf = 4;
const newerLimit = 5;
const olderLimit = 6;
const store = 7;
const prompt = 8;
const stop = 9;

/** In all operations: what their schemas do not know may still be there. */
const commonUses: MemberUses = {
  model: { note: model },
  stream: { note: stream },
  stream_options: { note: streamOptions, decisive: ["include_usage"] },
  n: { note: choices },
  best_of: { note: bestOf },
  max_completion_tokens: { note: newerLimit },
  max_tokens: { note: olderLimit },
  store: { note: store },
  tools: { as: "json" },
  functions: { as: "json" },
  response_format: { as: "json" },
  suffix: { as: "json" },
  documents: { as: "json" },
  stop: { note: stop },
};
const allUses: MemberUses = Object.assign({}, commonUses, ...Object.values(dialects).map(ownUses));
/** Names that decide what a request costs, and what becomes of it. */
const decisiveNames = Object.keys(allUses);
function ownUses({ promptMember }: Dialect): MemberUses {
  return { [promptMember]: { as: "prompt", note: prompt } };
}

/** Made when it is needed, as the rules below: not at the start, which is to be short. */
let names: FieldNames | undefined;

/** Whatever an endpoint takes a name for, it is known at all of them. */
function fieldNames(): FieldNames {
  names ??= new FieldNames(
    [...Object.values(dialects).flatMap(({ schema }) => [...namesOf(shapeFor(schema))]), ...decisiveNames],
    [
      ["", decisiveNames],
      ...Object.entries(allUses).flatMap(([name, { decisive }]) => (decisive ? [[name, decisive] as const] : [])),
    ],
  );
  return names;
}

const rules: Partial<Record<Operation, ValueRule>> = {};

function ruleOf(dialect: Dialect): ValueRule {
  const uses = { ...commonUses, ...ownUses(dialect) };
  rules[dialect.operation] ??= bodyRule(shapeFor(dialect.schema), uses, decisiveNames);
  return rules[dialect.operation] as ValueRule;
}

const onlyUsage = Buffer.from('{"include_usage":true}');
/** Of the request at hand. */
const marks: RequestMarks = {
  model: "",
  modelStart: 0,
  modelEnd: 0,
  stream: false,
  streamOptions: "none",
  width: 1,
  promptTokens: 0,
  tokenLimit: undefined,
  tokenLimitName: "max_tokens",
  corrections: undefined,
  hasMedia: false,
  store: undefined,
};

/** Undefined where one pass cannot vouch for the body; good or not, it is to be parsed then. */
function marksIn(dialect: Dialect, bytes: ByteSpan, limits: RequestLimits): RequestMarks | undefined {
  if (!load(bytes) || !isText(bytes)) return undefined;
  if (!scanBody(ruleOf(dialect), bytes.length, limits.depth, mostNames)) return undefined;
  if (dialect.isConversation && (items[prompt] as number) > limits.messages) return undefined;
  const newer = numberOf(newerLimit);
  const older = numberOf(olderLimit);
  // Few requests have to be corrected in another way than chats with both limits: they are parsed.
  if (newer === noTokenLimit || older === noTokenLimit || isEmptyText(stop)) return undefined;
  if (newer !== undefined && !dialect.knowsNewerLimit) return undefined;
  marks.modelStart = starts[model] as number;
  marks.modelEnd = ends[model] as number;
  marks.model = textAt(marks.modelStart, marks.modelEnd);
  marks.stream = dialect.generates && kindOf(stream) === trueKind;
  marks.streamOptions = kindOf(streamOptions) === noKind ? "none" : usageAsked() ? "usage" : "other";
  marks.width = dialect.width(numberOf(choices) ?? 1, numberOf(bestOf) ?? 1, promptsAsked());
  marks.promptTokens = found.promptTokens;
  marks.tokenLimit = newer ?? older;
  marks.tokenLimitName = newer === undefined ? "max_tokens" : "max_completion_tokens";
  marks.corrections = correctionsOf(dialect, newer);
  marks.hasMedia = found.hasMedia;
  marks.store = storeAsked();
  return marks;
}

function correctionsOf({ generates }: Dialect, newer: number | undefined): Corrections | undefined {
  return newer !== undefined && generates && kindOf(olderLimit) !== noKind ? newerLimitAlone : undefined;
}

function isEmptyText(note: number): boolean {
  return (ends[note] as number) - (starts[note] as number) === 2 && kindOf(note) === textKind;
}

/** Whether it is UTF-8. What it came with is mostly its own head, and both ASCII: no view of it is needed to see that. */
function isText(bytes: ByteSpan): boolean {
  return (bytes.end === bytes.buffer.length && isAscii(bytes.buffer)) || isUtf8(bytes.view);
}

function kindOf(note: number): number {
  const start = starts[note] as number;
  return start === 0 ? noKind : kindAt(start);
}

function numberOf(note: number): number | undefined {
  return kindOf(note) === numberKind ? numbers[note] : undefined;
}

function usageAsked(): boolean {
  const [start = 0, end = 0] = [starts[streamOptions], ends[streamOptions]];
  return isSame(onlyUsage, start, end) || asksForUsage(JSON.parse(latin1(start, end)));
}

function storeAsked(): boolean | null | undefined {
  const kind = kindOf(store);
  if (kind === trueKind || kind === falseKind) return kind === trueKind;
  return kind === nullKind ? null : undefined;
}

/** As `countTexts`. */
function promptsAsked(): number {
  if (kindOf(prompt) !== arrayKind || kindAt(afterSpace((starts[prompt] as number) + 1)) === numberKind) return 1;
  return items[prompt] as number;
}
