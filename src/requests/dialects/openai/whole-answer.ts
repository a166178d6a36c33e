// Reads a model server's whole answer (not streamed), and converts it to the form that the client expects.

import { type ByteSpan, PatchedSpan, withoutMark } from "../../../base/bytes/byte-span.ts";
import { isDigit } from "../../../base/text/json-bytes.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { Answer, AnswerNames, AskedRequest, Serving } from "../answer.ts";
import { scanAnswer } from "../answer-scan.ts";
import { mendWhole, requireNoFailure } from "../chat/strict-choices.ts";
import { hasFault, reportedFault } from "../engine-fault.ts";
import { comparedUsage, needsComparison } from "../least-usage.ts";
import type { LongModel } from "../long-answer.ts";
import { malformed } from "../malformed.ts";
import { modelNameJson } from "../model-names.ts";
import { estimateTokens } from "../prompt-tokens.ts";
import { edited, parseObject, ReadAnswer } from "../read-answer.ts";
import { servedOf } from "../reported-parts.ts";
import {
  deliveredBytes,
  hasTotal,
  isOfOneChoice,
  reportedUsage,
  usageFromFirst,
  usageObject,
  withTotal,
} from "./usage.ts";

const quote = 0x22;

/**
 * Returns the model server's bytes unless something must change. Changes are the public model id, missing usage,
 * members that every client expects, and the encoding of embeddings. Throws `upstream_error` if the answer is unusable.
 */
export function readAnswer(all: ByteSpan, request: AskedRequest, serving: Serving, names: AnswerNames): Answer {
  // Some servers put a byte-order mark before the answer.
  const bytes = withoutMark(all);
  serving.trace?.answer(bytes);
  return plainAnswer(bytes, request, serving.model, names) ?? parsedAnswer(bytes, request, serving, names);
}

/** Returns an ordinary answer, in which only the model's name changes. Returns undefined for any other answer. */
function plainAnswer(
  bytes: ByteSpan,
  request: AskedRequest,
  { id: model, context }: Serving["model"],
  names: AnswerNames,
): Answer | undefined {
  const { dialect } = request;
  if (!dialect.generates || names.ownId || request.width > 1) return undefined;
  const found = scanAnswer(bytes);
  if (!found) return undefined;
  if (!found.isNothing("error") || !found.hasObjects("choices")) return undefined;
  if (found.firstByteOf("id") !== quote || !isDigit(found.firstByteOf("created"))) return undefined;
  if (!found.isText("object", dialect.answerObject)) return undefined;
  // In this case the answer must be parsed: calls may have to be completed, and a choice without a message is invalid.
  if (dialect.isConversation && !found.hasPlainMessages) return undefined;
  const tier = found.firstByteOf("service_tier") === quote ? found.parsedValueOf("service_tier") : undefined;
  const isPlain = found.usage && servedOf(tier) === undefined;
  const usage = isPlain ? found.usage : wholeUsage(found.parsedValueOf("usage"), tier);
  const choicesBytes = found.endOf("choices") - found.startOf("choices");
  if (!usage || needsComparison(usage, choicesBytes, request, context)) return undefined;
  if (found.isText("model", model)) return new ReadAnswer(bytes, usage);
  const start = found.startOf("model");
  if (start === 0) return undefined;
  return new ReadAnswer(new PatchedSpan(bytes, start, found.endOf("model"), modelNameJson(model)), usage);
}

/**
 * Completes choices in place, and reports whether any choice changed. Throws for a choice without a message, or if the
 * server reports that it gave up a choice.
 */
function strictWhole(choices: readonly unknown[], engine: Serving["deployment"]["engine"], id: string): boolean {
  for (const choice of choices) {
    if (!isObject((choice as { message?: unknown }).message)) throw malformed("a chat completion without a message");
    requireNoFailure(choice, engine);
  }
  return mendWhole(choices, id);
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the reported usage, or undefined if a figure is missing. */
function wholeUsage(said: unknown, tier: unknown): TokenUsage | undefined {
  return hasTotal(said) ? reportedUsage(said, tier) : undefined;
}

/** Parses and checks an answer of any kind. */
function parsedAnswer(bytes: ByteSpan, request: AskedRequest, serving: Serving, names: AnswerNames): Answer {
  const { text } = bytes;
  const body = parseObject(text);
  const { dialect } = request;
  if (hasFault(body, dialect.answerList)) {
    throw reportedFault(text, serving.deployment.engine, "The model server failed.", "error in a 200 answer");
  }
  const list = body[dialect.answerList];
  if (!Array.isArray(list)) throw malformed("neither choices nor data");
  if (list.length === 0) throw malformed("no choice and no embedding");
  if (dialect.generates && !list.every(isObject)) throw malformed("a choice that is no object");
  const isMended = dialect.isConversation && strictWhole(list, serving.deployment.engine, names.id);

  const edits: Record<string, string | null> = {};
  const { id: model } = serving.model;
  if (body["model"] !== model) edits["model"] = JSON.stringify(model);
  const reported = reportedUsage(body["usage"], body["service_tier"], dialect.generates);
  const isOfFirst = reported !== undefined && dialect.generates && list.length > 1 && isOfOneChoice(body);
  const ofAll = isOfFirst ? usageFromFirst(reported, list, request) : reported;
  const usage = usageOf(ofAll, request, list, serving.model.context);
  if (usage !== reported) edits["usage"] = JSON.stringify(usageObject(usage, dialect));
  else if (!hasTotal(body["usage"])) edits["usage"] = JSON.stringify(withTotal(body["usage"], usage));
  if (names.ownId || typeof body["id"] !== "string") edits["id"] = JSON.stringify(names.id);
  if (dialect.generates && typeof body["created"] !== "number") edits["created"] = String(names.created);
  if (body["object"] !== dialect.answerObject) edits["object"] = JSON.stringify(dialect.answerObject);
  if (dialect.encode(list, request) || isMended) edits[dialect.answerList] = JSON.stringify(list);
  return new ReadAnswer(Object.keys(edits).length === 0 ? bytes : edited(text, edits), usage);
}

/**
 * Returns new JSON for a member beside a long list of embeddings, or undefined if the member stays. The result is the
 * same as that of `parsedAnswer` for a short list.
 */
export function editedMember(
  name: string,
  value: unknown,
  request: AskedRequest,
  { id, context, answerId }: LongModel,
): string | undefined {
  const { dialect } = request;
  // In OpenAI's API, this answer has no id. Mistral's SDKs refuse an answer without an id.
  if (name === "id") return typeof value === "string" ? undefined : JSON.stringify(answerId);
  if (name === "model") return JSON.stringify(id);
  if (name === "object") return JSON.stringify(dialect.answerObject);
  if (name !== "usage") return undefined;
  const reported = reportedUsage(value, undefined, dialect.generates);
  const usage = usageOf(reported, request, [], context);
  if (usage !== reported) return JSON.stringify(usageObject(usage, dialect));
  return hasTotal(value) ? undefined : JSON.stringify(withTotal(value, usage));
}

/**
 * Returns the reported usage, but with an estimate in place of each impossible figure. If no usage was reported,
 * returns an estimate.
 */
export function usageOf(
  reported: TokenUsage | undefined,
  request: AskedRequest,
  choices: readonly unknown[],
  context: number | undefined,
): TokenUsage {
  const bytes = choices.reduce<number>((sum, choice) => sum + deliveredBytes(choice), 0);
  return comparedUsage(reported, request, { bytes, tokens: estimateTokens(bytes) }, context);
}
