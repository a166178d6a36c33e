// Compares reported usage with the sent and delivered text: a model server may err or ignore a limit, and a node may
// lie.
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { countTexts } from "../../wire/parts.ts";
import type { AskedRequest } from "./answer.ts";

/**
 * Maximum bytes of one token: the longest tokens in the vocabularies of GPT-4o, Llama 3 and Qwen are 128 blanks.
 * Words have about four bytes per token, so honest reports are far above this bound.
 */
const maxTokenBytes = 128;
/**
 * Context in tokens that every model has at least. Some servers silently cut prompts that are longer than their
 * context.
 */
const smallestContext = 2_048;
/** Bytes of JSON around the text of a short answer in its choices. */
const choiceBytes = 512;
/** Bytes per token in estimates of prompts. */
const estimatedBytesPerToken = 4;

/** The delivered part of an answer: UTF-8 bytes of text, and an estimate of its tokens. */
export interface Delivered {
  bytes: number;
  tokens: number;
}

/**
 * Reports cheaply whether the text of a whole answer must be compared with its usage. Returns false only if the usage
 * lacks at most a few tokens. `choicesBytes` is the size of the choices as JSON. `context` is the model's context in
 * tokens, if known.
 */
export function needsComparison(
  usage: TokenUsage,
  choicesBytes: number,
  request: AskedRequest,
  context: number | undefined,
): boolean {
  const { promptTokens, completionTokens } = usage;
  if (completionTokens === 0 || choicesBytes - choiceBytes > completionTokens * maxTokenBytes) return true;
  return completionTokens > allowedTokens(request, context) || isFarBelow(promptTokens, request.promptTokens);
}

/** Returns the reported usage, corrected by the delivered text; without a report, an estimate. */
export function comparedUsage(
  reported: TokenUsage | undefined,
  request: AskedRequest,
  delivered: Delivered,
  context: number | undefined,
): TokenUsage {
  const compared = reported
    ? atLeastDelivered(reported, request, delivered, context)
    : { promptTokens: request.promptTokens, completionTokens: delivered.tokens, estimated: true };
  return provenUsage(compared, request, delivered, context);
}

/**
 * Marks a usage as `pastLimit` if the delivered text proves that it exceeds the limit of the request: some servers
 * ignore the limit. If a server reports more tokens than delivered bytes, the estimate is used, because a token has at
 * least one byte.
 */
export function provenUsage(
  usage: TokenUsage,
  request: AskedRequest,
  delivered: Delivered,
  context: number | undefined,
): TokenUsage {
  const allowed = allowedTokens(request, context);
  if (usage.completionTokens <= allowed || delivered.tokens <= allowed) return usage;
  const own = withoutEcho(delivered, request);
  if (own.tokens <= allowed) return usage;
  if (usage.completionTokens <= own.bytes) return { ...usage, pastLimit: true };
  return { ...usage, completionTokens: own.tokens, estimated: true, overstated: true, pastLimit: true };
}

/**
 * Returns the tokens of all generations that the request or the model's context allows; infinite if neither sets a
 * limit.
 */
function allowedTokens({ maxCompletionTokens, width }: AskedRequest, context = Number.POSITIVE_INFINITY): number {
  return Math.min(maxCompletionTokens ?? context, context) * width;
}

/**
 * Returns the usage, with an estimate in place of each figure below the proven minimum. If the prompt's figure is
 * wrong, its parts are dropped as well. `context` is the model's context in tokens, if known.
 */
function atLeastDelivered(
  usage: TokenUsage,
  request: AskedRequest,
  delivered: Delivered,
  context: number | undefined,
): TokenUsage {
  const { promptTokens, completionTokens } = usage;
  const seemsTooFew = completionTokens < Math.ceil(delivered.bytes / maxTokenBytes);
  const { bytes, tokens } = seemsTooFew ? withoutEcho(delivered, request) : delivered;
  const tooFewDelivered = completionTokens < Math.ceil(bytes / maxTokenBytes);
  const tooFewSent = isFarBelow(promptTokens, request.promptTokens) && isTooFewSent(promptTokens, request, context);
  if (!tooFewDelivered && !tooFewSent) return usage;
  return {
    promptTokens: tooFewSent ? request.promptTokens : promptTokens,
    completionTokens: tooFewDelivered ? tokens : completionTokens,
    estimated: true,
    understated: true,
    parts: tooFewSent ? undefined : usage.parts,
  };
}

/**
 * Returns the delivered part without an echoed prompt, which the model did not write. May have to parse the request
 * body again.
 */
function withoutEcho(delivered: Delivered, request: AskedRequest): Delivered {
  if (!request.body["echo"]) return delivered;
  const bytes = Math.max(0, delivered.bytes - echoedBytes(request));
  return { bytes, tokens: Math.ceil((delivered.tokens * bytes) / Math.max(1, delivered.bytes)) };
}

/**
 * Returns the bytes that may precede each choice: the prompt, or for vLLM's chats, the beginning of the answer that the
 * client sent.
 */
function echoedBytes({ dialect, body, width }: AskedRequest): number {
  const prompt = body[dialect.promptMember];
  if (!dialect.isConversation) return (textBytes(prompt, maxTokenBytes) * width) / countTexts(prompt);
  const last = Array.isArray(prompt) ? prompt.at(-1) : undefined;
  return last?.role === "assistant" ? textBytes(last.content) * width : 0;
}

/** Reports whether a prompt with this estimate cannot have as few tokens as reported. */
export function isFarBelow(promptTokens: number, estimated: number): boolean {
  return promptTokens * maxTokenBytes < estimated * estimatedBytesPerToken;
}

/**
 * Reports whether the prompt certainly has more tokens than reported. Only the user's messages count: templates leave
 * out tools that the model does not know, and earlier reasoning. If the prompt may not fit the context, servers also
 * leave out or cut messages, so it has at least one token. May have to parse the request body again.
 */
function isTooFewSent(reported: number, request: AskedRequest, context = smallestContext): boolean {
  const fits = request.bodyBytes + (request.maxCompletionTokens ?? 0) <= context;
  if (!fits && reported > 0) return false;
  const { dialect, body } = request;
  const prompt = body[dialect.promptMember];
  const bytes = dialect.isConversation ? userBytes(prompt) : textBytes(prompt);
  // With one of these members, the client allows the server to cut the prompt.
  const mayBeCut = ["truncate_prompt_tokens", "truncate", "transforms"].some((name) => body[name] != null);
  return reported < (fits && !mayBeCut ? Math.ceil(bytes / maxTokenBytes) : Math.min(1, bytes));
}

function userBytes(messages: unknown): number {
  // The input of a Responses request may be a text.
  if (typeof messages === "string") return textBytes(messages);
  let bytes = 0;
  for (const message of Array.isArray(messages) ? messages : []) {
    const { role, content } = message as { role?: unknown; content?: unknown };
    if (role === "user") bytes += textBytes(content);
  }
  return bytes;
}

/** Returns the bytes of a text, or of a list of texts, text parts or tokens. Each token counts as `tokenBytes`. */
function textBytes(value: unknown, tokenBytes = 1): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return tokenBytes;
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + textBytes(one, tokenBytes), 0);
  const { text } = (value ?? {}) as { text?: unknown };
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}
