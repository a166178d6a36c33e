// Token usage of one request: what the engine reports, or an estimate from the text.
import type { Operation } from "../../domain/models/engine.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";

/** Rough and language-dependent, but never zero; only used where an engine reports nothing. */
const bytesPerToken = 4;
/** Of an image, a recording or a file: what most models make of an image of usual size. */
export const mediaTokens = 1_000;
/** Parts of a message whose text tells their tokens, and those that hold an address or data. */
const textParts: ReadonlySet<unknown> = new Set(["text", "refusal", "thinking"]);
const mediaParts: ReadonlySet<unknown> = new Set(["image_url", "input_audio", "file", "video_url", "audio_url"]);
/** Longer pieces of a stream, on average, are no single tokens. */
const longestTokenBytes = 12;

/** The usage object of a response or chunk, or undefined where it is absent or not whole numbers. */
export function reportedUsage(value: unknown): TokenUsage | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { prompt_tokens, completion_tokens, estimated } = value as Record<string, unknown>;
  const completionTokens = completion_tokens ?? 0;
  if (!isCount(prompt_tokens) || !isCount(completionTokens)) return undefined;
  // Said by ourselves of a whole answer that becomes a stream, or by another Headrace behind this one.
  return { promptTokens: prompt_tokens, completionTokens, estimated: estimated === true };
}

/** A reported usage object with its sum, which some servers leave out; its other members stay. */
export function withTotal(reported: unknown, usage: TokenUsage): Record<string, unknown> {
  return { ...(reported as object), total_tokens: usage.promptTokens + usage.completionTokens };
}

export function hasTotal(reported: unknown): boolean {
  return typeof (reported as { total_tokens?: unknown } | null)?.total_tokens === "number";
}

/** The usage object as clients read it. */
export function usageObject(usage: TokenUsage, operation: Operation): Record<string, number | boolean> {
  return {
    prompt_tokens: usage.promptTokens,
    ...(operation === "embedding" ? {} : { completion_tokens: usage.completionTokens }),
    total_tokens: usage.promptTokens + usage.completionTokens,
    ...(usage.estimated ? { estimated: true } : {}),
  };
}

export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/**
 * Tokens of a stream as far as it was delivered. Most servers send one token a piece, which is exact where it holds;
 * pieces too long for that are counted by their bytes.
 */
export function estimateDelivered(bytes: number, pieces: number): number {
  return bytes <= pieces * longestTokenBytes ? pieces : estimateTokens(bytes);
}

/** Where a request has its prompt; what it has by the name of another is a member that no schema knows. */
const promptMembers: Readonly<Record<Operation, string>> = {
  chat: "messages",
  completion: "prompt",
  embedding: "input",
};

/** Prompt tokens estimated from all of a request that a model is shown: texts, calls, tools, schemas, media. */
export function estimatePromptTokens(operation: Operation, request: Readonly<Record<string, unknown>>): number {
  let tokens = countTokens(request[promptMembers[operation]]);
  for (const name of shownAsJson) tokens += countJson(request[name]);
  return tokens;
}

/** Members beside the prompt that are put into it. */
const shownAsJson = ["tools", "functions", "response_format", "suffix", "documents"] as const;
/** Members of a message or of its parts that are not put into the prompt, or are in it for every message. */
const notShown: ReadonlySet<string> = new Set(["role", "name", "tool_call_id", "type"]);
/** And those of them that are, whatever else the part holds. */
const alwaysShown: ReadonlySet<string> = new Set(["tool_calls", "function_call", "refusal"]);

/** Whether something of it is no text: its tokens are not told by its length. */
export function isMediaPart(part: unknown): boolean {
  return typeof part === "object" && part !== null && !textParts.has((part as { type?: unknown }).type);
}

function countJson(value: unknown): number {
  return value === undefined || value === null ? 0 : estimateTokens(Buffer.byteLength(JSON.stringify(value)));
}

function countTokens(value: unknown): number {
  if (typeof value === "string") return estimateTokens(Buffer.byteLength(value));
  if (typeof value === "number") return 1;
  if (typeof value !== "object" || value === null) return 0;
  if (Array.isArray(value)) {
    let tokens = 0;
    for (let i = 0; i < value.length; i++) tokens += countTokens(value[i]);
    return tokens;
  }
  return countMembers(value as Readonly<Record<string, unknown>>);
}

/** A message, or a part of one. What is not known may be anything: text to its last byte, or an image behind an address. */
function countMembers(value: Readonly<Record<string, unknown>>): number {
  const { type } = value;
  const isMedia = mediaParts.has(type);
  if (typeof type === "string" && !isMedia && !textParts.has(type)) return Math.max(mediaTokens, countJson(value));
  let tokens = isMedia ? mediaTokens : 0;
  for (const name in value) {
    if (name === "content" || name === "text") tokens += countTokens(value[name]);
    else if (alwaysShown.has(name) || !(isMedia || notShown.has(name))) tokens += countJson(value[name]);
  }
  return tokens;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** UTF-8 bytes of everything that a choice delivers, in a chunk (`delta`), a whole answer (`message`) or legacy `text`. */
export function deliveredBytes(choice: unknown): number {
  if (typeof choice !== "object" || choice === null) return 0;
  const { text, delta, message } = choice as { text?: unknown; delta?: unknown; message?: unknown };
  return bytesOf(text) + bytesOfReply(delta) + bytesOfReply(message);
}

function bytesOfReply(reply: unknown): number {
  if (typeof reply !== "object" || reply === null) return 0;
  const { content, reasoning_content, reasoning, refusal, tool_calls, function_call } = reply as Record<
    string,
    unknown
  >;
  let bytes = bytesOf(content) + bytesOf(reasoning_content) + bytesOf(reasoning) + bytesOf(refusal);
  const calls = Array.isArray(tool_calls) ? tool_calls : [];
  for (const call of calls) bytes += bytesOfCall((call as { function?: unknown } | null)?.function);
  return bytes + bytesOfCall(function_call);
}

function bytesOfCall(call: unknown): number {
  if (typeof call !== "object" || call === null) return 0;
  const { name, arguments: values } = call as { name?: unknown; arguments?: unknown };
  return bytesOf(name) + bytesOf(values);
}

function bytesOf(text: unknown): number {
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}
