// Compares reported usage with what was sent and delivered: a model server may err or ignore a limit, and a node may lie.
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { countTexts } from "../../wire/parts.ts";
import type { AskedRequest } from "./answer.ts";

/**
 * No token stands for more text: the longest in the vocabularies of GPT-4o, Llama 3 and Qwen are 128 blanks. Text of words
 * has some four bytes a token, so an honest report is far above.
 */
const maxTokenBytes = 128;
/** Tokens that every model takes: some servers cut longer prompts without a word. */
const smallestContext = 2_048;
/** What surrounds the text of a short answer in its choices. */
const choiceBytes = 512;
/** Prompts are estimated with a token for so many bytes. */
const estimatedBytesPerToken = 4;

/** What was delivered of an answer: UTF-8 bytes of text, and the tokens that they are by an estimate. */
export interface Delivered {
  bytes: number;
  tokens: number;
}

/**
 * Reports whether the text of a whole answer has to be compared with its usage. Cheap; false only where a few tokens at most
 * are missing. `choicesBytes`: of its choices as JSON. `context`: of the model, in tokens, where it is known.
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

/** Returns the usage that was reported, corrected by what was delivered; without a report, an estimate. */
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
 * Marks a usage as `pastLimit` where the delivered text proves that it is more than the request allows: some servers ignore
 * the limit. A report of more tokens than delivered bytes is replaced by the estimate, as a token is a byte at least.
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

/** Tokens of all generations that the request, or the context of its model, allows; infinite where neither says. */
function allowedTokens({ maxCompletionTokens, width }: AskedRequest, context = Number.POSITIVE_INFINITY): number {
  return Math.min(maxCompletionTokens ?? context, context) * width;
}

/**
 * The usage itself, or, where one of its figures is below what is certain, an estimate in the place of that figure; one that
 * is wrong of the prompt is not believed to know its parts.
 * `context`: of the model, in tokens, where it is known.
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
  const tooFewSent = isFarBelow(promptTokens, request.promptTokens) && promptTokens < minPromptTokens(request, context);
  if (!tooFewDelivered && !tooFewSent) return usage;
  return {
    promptTokens: tooFewSent ? request.promptTokens : promptTokens,
    completionTokens: tooFewDelivered ? tokens : completionTokens,
    estimated: true,
    understated: true,
    parts: tooFewSent ? undefined : usage.parts,
  };
}

/** Returns only the text that the model wrote itself. The body may have to be parsed again for this. */
function withoutEcho(delivered: Delivered, request: AskedRequest): Delivered {
  if (!request.body["echo"]) return delivered;
  const bytes = Math.max(0, delivered.bytes - echoedBytes(request));
  return { bytes, tokens: Math.ceil((delivered.tokens * bytes) / Math.max(1, delivered.bytes)) };
}

/** What may stand before each choice: the prompt, or in a chat, as vLLM has it, the answer that was begun by the client. */
function echoedBytes({ dialect, body, width }: AskedRequest): number {
  const prompt = body[dialect.promptMember];
  if (!dialect.isConversation) return (textBytes(prompt, maxTokenBytes) * width) / countTexts(prompt);
  const last = Array.isArray(prompt) ? prompt.at(-1) : undefined;
  return last?.role === "assistant" ? textBytes(last.content) * width : 0;
}

/** Reports whether a prompt that is estimated at so many tokens cannot have as few as were told. */
export function isFarBelow(promptTokens: number, estimated: number): boolean {
  return promptTokens * maxTokenBytes < estimated * estimatedBytesPerToken;
}

/**
 * Only what the client says itself is certain to be in the prompt: templates leave out tools that the model does not know, and
 * thoughts of earlier answers. Where the prompt may not fit, servers leave out messages as well, or cut them.
 */
function minPromptTokens(request: AskedRequest, context = smallestContext): number {
  const { dialect, body, maxCompletionTokens = 0 } = request;
  const prompt = body[dialect.promptMember];
  const bytes = dialect.isConversation ? userBytes(prompt) : textBytes(prompt);
  if (bytes === 0) return 0;
  // These say that the server may cut it.
  const mayBeCut = ["truncate_prompt_tokens", "truncate", "transforms"].some((name) => body[name] != null);
  const fits = !mayBeCut && request.bodyBytes + maxCompletionTokens <= context;
  return fits ? Math.ceil(bytes / maxTokenBytes) : 1;
}

function userBytes(messages: unknown): number {
  // The input of a response may be a text.
  if (typeof messages === "string") return textBytes(messages);
  let bytes = 0;
  for (const message of Array.isArray(messages) ? messages : []) {
    const { role, content } = message as { role?: unknown; content?: unknown };
    if (role === "user") bytes += textBytes(content);
  }
  return bytes;
}

/** Bytes of a text, a list of texts or text parts, or tokens, of which each counts as so many. */
function textBytes(value: unknown, tokenBytes = 1): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return tokenBytes;
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + textBytes(one, tokenBytes), 0);
  const { text } = (value ?? {}) as { text?: unknown };
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}
