// Compares the reported usage with the text that was sent and delivered. A model server may make mistakes or ignore a
// limit, and a node may lie.
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { countTexts } from "../../wire/parts.ts";
import type { AskedRequest } from "./answer.ts";

/**
 * Maximum length of one token in bytes. The longest tokens in the vocabularies of GPT-4o, Llama 3 and Qwen are 128
 * blanks. Words have about four bytes per token, so an honest report is far above the minimum that follows from this
 * length.
 */
const maxTokenBytes = 128;
/**
 * Size in tokens of the smallest context that a model has. Some servers cut a prompt without notice if it is longer
 * than their context.
 */
const smallestContext = 2_048;
/** Bytes of JSON that surround the text in the choices of a short answer. */
const choiceBytes = 512;
/** Bytes per token in an estimate of a prompt. */
const estimatedBytesPerToken = 4;

/** The delivered part of an answer: the UTF-8 bytes of its text, and an estimate of its tokens. */
export interface Delivered {
  bytes: number;
  tokens: number;
}

/**
 * Reports quickly whether the text of a whole answer must be compared with its usage. Returns false only if the
 * reported usage can be too low by a few tokens at most. `choicesBytes` is the size of the choices as JSON. `context`
 * is the model's context in tokens, if known.
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

/** Returns the reported usage, corrected with the delivered text. If no usage was reported, returns an estimate. */
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
 * Marks a usage as `pastLimit` if the delivered text proves that it exceeds the limit of the request. Some servers
 * ignore the limit. A token has at least one byte, so if a server reports more tokens than the delivered bytes, the
 * estimate is used instead.
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
 * Returns how many tokens the request or the model's context allows for all generations together. Returns infinity if
 * neither sets a limit.
 */
function allowedTokens({ maxCompletionTokens, width }: AskedRequest, context = Number.POSITIVE_INFINITY): number {
  return Math.min(maxCompletionTokens ?? context, context) * width;
}

/**
 * Returns the usage, but with an estimate in place of each figure below the proven minimum. If the figure of the prompt
 * is wrong, its parts are dropped too. `context` is the model's context in tokens, if known.
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
 * Returns the delivered part without an echoed prompt, because the model did not write the prompt. This function may
 * have to parse the request body again.
 */
function withoutEcho(delivered: Delivered, request: AskedRequest): Delivered {
  if (!request.body["echo"]) return delivered;
  const bytes = Math.max(0, delivered.bytes - echoedBytes(request));
  return { bytes, tokens: Math.ceil((delivered.tokens * bytes) / Math.max(1, delivered.bytes)) };
}

/**
 * Returns how many bytes may precede each choice. These are the bytes of the prompt or, for chats of vLLM, the bytes of
 * the answer's beginning that the client sent.
 */
function echoedBytes({ dialect, body, width }: AskedRequest): number {
  const prompt = body[dialect.promptMember];
  if (!dialect.isConversation) return (textBytes(prompt, maxTokenBytes) * width) / countTexts(prompt);
  const last = Array.isArray(prompt) ? prompt.at(-1) : undefined;
  return last?.role === "assistant" ? textBytes(last.content) * width : 0;
}

/** Reports whether a prompt with this estimate must have more tokens than were reported. */
export function isFarBelow(promptTokens: number, estimated: number): boolean {
  return promptTokens * maxTokenBytes < estimated * estimatedBytesPerToken;
}

/**
 * Reports whether the prompt certainly has more tokens than were reported. Only the user's messages count, because
 * templates leave out earlier reasoning, and tools that the model does not know. If the prompt may not fit into the
 * context, servers also leave out or cut messages, so only one token is certain. This function may have to parse the
 * request body again.
 */
function isTooFewSent(reported: number, request: AskedRequest, context = smallestContext): boolean {
  const fits = request.bodyBytes + (request.maxCompletionTokens ?? 0) <= context;
  if (!fits && reported > 0) return false;
  const { dialect, body } = request;
  const prompt = body[dialect.promptMember];
  const bytes = dialect.isConversation ? userBytes(prompt) : textBytes(prompt);
  // If the request has one of these members, the client allows the server to cut the prompt.
  const mayBeCut = ["truncate_prompt_tokens", "truncate", "transforms"].some((name) => body[name] != null);
  return reported < (fits && !mayBeCut ? Math.ceil(bytes / maxTokenBytes) : Math.min(1, bytes));
}

function userBytes(messages: unknown): number {
  // The input of a Responses request may be a plain text.
  if (typeof messages === "string") return textBytes(messages);
  let bytes = 0;
  for (const message of Array.isArray(messages) ? messages : []) {
    const { role, content } = message as { role?: unknown; content?: unknown };
    if (role === "user") bytes += textBytes(content);
  }
  return bytes;
}

/**
 * Returns the bytes of a text, or of a list of texts, text parts or tokens. Each token counts as `tokenBytes` bytes.
 */
function textBytes(value: unknown, tokenBytes = 1): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return tokenBytes;
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + textBytes(one, tokenBytes), 0);
  const { text } = (value ?? {}) as { text?: unknown };
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}
