// Decodes the body of an inference request: in one pass over its bytes where it is as most are, parsed and checked where it is not.
import { isAscii, isUtf8 } from "node:buffer";
import type { z } from "zod";
import { type ByteSpan, withoutMark } from "../../base/bytes/byte-span.ts";
import { fieldError } from "../../base/errors.ts";
import { afterSpace, isSame, latin1, load, textAt } from "../../base/text/json-bytes.ts";
import type { Operation } from "../../domain/models/engine.ts";
import { DecodedRequest } from "../../inference/decoded-request.ts";
import { asksForUsage, type Corrections, marksOf, newerLimitAlone, type RequestMarks } from "../../inference/facts.ts";
import { chatRequest } from "../../wire/chat.ts";
import { completionRequest } from "../../wire/completion.ts";
import { embeddingRequest } from "../../wire/embedding.ts";
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
  partUses,
  textKind,
  trueKind,
  type ValueRule,
} from "./scan-rule.ts";
import { shapeFor, validate } from "./validation.ts";

export interface RequestLimits extends BodyLimits {
  messages: number;
}

export const requestSchemas: Readonly<Record<Operation, z.ZodType>> = {
  chat: chatRequest,
  completion: completionRequest,
  embedding: embeddingRequest,
};

/** Throws a GatewayError. */
export function decodeRequest(operation: Operation, sent: ByteSpan, limits: RequestLimits): DecodedRequest {
  const bytes = withoutMark(sent);
  const marks = marksIn(operation, bytes, limits);
  return marks ? new DecodedRequest(operation, bytes, marks) : parsedRequest(operation, sent, limits);
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
  fieldNames().require(shapeFor(requestSchemas[operation]), body);
  validate(requestSchemas[operation], body);
  return new DecodedRequest(operation, bytes, marksOf(operation, body), parsed);
}

const model = 0;
const stream = 1;
const streamOptions = 2;
const choices = 3;
const bestOf = 4;
const newerLimit = 5;
const olderLimit = 6;
const store = 7;
const messages = 8;
const prompt = 9;
const stop = 10;

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
const ownUses: Readonly<Record<Operation, MemberUses>> = {
  chat: { messages: { as: "prompt", note: messages } },
  completion: { prompt: { as: "prompt", note: prompt } },
  embedding: { input: { as: "prompt" } },
};
const allUses: MemberUses = { ...commonUses, ...ownUses.chat, ...ownUses.completion, ...ownUses.embedding };
/** Names that decide what a request costs, and what becomes of it. */
const decisiveNames = Object.keys(allUses);
/** Made when it is needed, as the rules below: not at the start, which is to be short. */
let names: FieldNames | undefined;

/** Whatever an endpoint takes a name for, it is known at all of them. */
function fieldNames(): FieldNames {
  names ??= new FieldNames(
    [
      ...Object.values(requestSchemas).flatMap((schema) => [...namesOf(shapeFor(schema))]),
      ...decisiveNames,
      ...Object.keys(partUses),
    ],
    [
      ["", decisiveNames],
      ...Object.entries(allUses).flatMap(([name, { decisive }]) => (decisive ? [[name, decisive] as const] : [])),
    ],
  );
  return names;
}

const rules: Partial<Record<Operation, ValueRule>> = {};

function newRule(operation: Operation): ValueRule {
  const uses = { ...commonUses, ...ownUses[operation] };
  return bodyRule(shapeFor(requestSchemas[operation]), uses, decisiveNames);
}

function ruleOf(operation: Operation): ValueRule {
  rules[operation] ??= newRule(operation);
  return rules[operation];
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
function marksIn(operation: Operation, bytes: ByteSpan, limits: RequestLimits): RequestMarks | undefined {
  if (!load(bytes) || !isText(bytes)) return undefined;
  if (!scanBody(ruleOf(operation), bytes.length, limits.depth, mostNames)) return undefined;
  if (operation === "chat" && (items[messages] as number) > limits.messages) return undefined;
  const newer = numberOf(newerLimit);
  const older = numberOf(olderLimit);
  // Few requests have to be corrected in another way than chats with both limits: they are parsed.
  if (newer === noTokenLimit || older === noTokenLimit || isEmptyText(stop)) return undefined;
  if (newer !== undefined && operation === "completion") return undefined;
  marks.modelStart = starts[model] as number;
  marks.modelEnd = ends[model] as number;
  marks.model = textAt(marks.modelStart, marks.modelEnd);
  marks.stream = operation !== "embedding" && kindOf(stream) === trueKind;
  marks.streamOptions = kindOf(streamOptions) === noKind ? "none" : usageAsked() ? "usage" : "other";
  marks.width = widthOf(operation);
  marks.promptTokens = found.promptTokens;
  marks.tokenLimit = newer ?? older;
  marks.tokenLimitName = newer === undefined ? "max_tokens" : "max_completion_tokens";
  marks.corrections = correctionsOf(operation, newer);
  marks.hasMedia = found.hasMedia;
  marks.store = storeAsked();
  return marks;
}

function correctionsOf(operation: Operation, newer: number | undefined): Corrections | undefined {
  return newer !== undefined && operation === "chat" && kindOf(olderLimit) !== noKind ? newerLimitAlone : undefined;
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

function widthOf(operation: Operation): number {
  if (operation === "embedding") return 1;
  const width = numberOf(choices) ?? 1;
  if (operation === "chat") return width;
  return Math.max(width, numberOf(bestOf) ?? 1) * promptsAsked();
}

/** As `countTexts`. */
function promptsAsked(): number {
  if (kindOf(prompt) !== arrayKind || kindAt(afterSpace((starts[prompt] as number) + 1)) === numberKind) return 1;
  return items[prompt] as number;
}
