// Reads the token usage that model servers report, and counts delivered text.
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { partsTogether } from "../../../domain/usage/usage-parts.ts";
import { countTexts } from "../../../wire/parts.ts";
import type { AnswerFormat, AskedRequest } from "../answer.ts";
import { chatUsage } from "../chat/reply-usage.ts";
import { estimateTokens } from "../prompt-tokens.ts";
import { partsOf } from "../reported-parts.ts";

/**
 * Returns the usage of a response or chunk, or undefined if it is missing or has no whole numbers. `tier` is the
 * reported service tier. `generates` is false for an operation whose answers have no tokens besides the prompt.
 */
export function reportedUsage(value: unknown, tier?: unknown, generates = true): TokenUsage | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = value as Record<string, unknown>;
  const { estimated, completion_tokens } = found;
  const reported = chatUsage(generates ? found : { ...found, total_tokens: undefined }, tier);
  const { promptTokens, completionTokens = completion_tokens == null ? 0 : undefined } = reported;
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  // Only a gateway sends `estimated`: either this gateway, for a whole answer that becomes a stream, or another
  // Headrace behind this one.
  return { promptTokens, completionTokens, estimated: estimated === true, parts: partsOf(reported) };
}

/** Minimum bytes of a text whose tokens per byte are credible for the other texts of the answer. */
const minComparableBytes = 64;

/**
 * Reports whether the usage of an answer or chunk covers only one of its choices. The model server llama-server counts
 * each choice alone, and reports its timings in a member next to the usage.
 */
export function isOfOneChoice({ timings }: Readonly<Record<string, unknown>>): boolean {
  return typeof (timings as { predicted_n?: unknown } | null | undefined)?.predicted_n === "number";
}

/** Returns the usage of an answer from the usages of its choices. A prompt with several choices counts once. */
export function sumOfChoices(choices: readonly TokenUsage[], request: AskedRequest): TokenUsage {
  const [first] = choices;
  const prompts = promptsOf(request);
  const readings = choices.map(({ promptTokens }) => promptTokens);
  const read = readings.reduce((sum, tokens) => sum + tokens, 0);
  return {
    promptTokens: Math.max(...readings, Math.ceil((read * prompts) / request.width)),
    completionTokens: choices.reduce((sum, { completionTokens }) => sum + completionTokens, 0),
    estimated: choices.some(({ estimated }) => estimated),
    parts: prompts === 1 ? first?.parts : partsTogether(choices.flatMap(({ parts }) => (parts ? [parts] : []))),
  };
}

/** Returns the usage of a whole answer from that of its first choice. The tokens of the other choices are estimated. */
export function usageFromFirst(first: TokenUsage, choices: readonly unknown[], request: AskedRequest): TokenUsage {
  const { promptTokens, completionTokens } = first;
  const [own = 0, ...others] = choices.map(deliveredBytes);
  const bytes = others.reduce((sum, each) => sum + each, 0);
  const estimate =
    own < minComparableBytes ? estimateTokens(bytes) : Math.min(bytes, Math.round((completionTokens * bytes) / own));
  const allowed = (request.maxCompletionTokens ?? Number.POSITIVE_INFINITY) * others.length;
  return {
    ...first,
    promptTokens: promptsOf(request) === 1 ? promptTokens : Math.max(promptTokens, request.promptTokens),
    completionTokens: completionTokens + Math.min(estimate, allowed),
    estimated: true,
  };
}

function promptsOf({ dialect, body }: AskedRequest): number {
  return dialect.isConversation ? 1 : countTexts(body[dialect.promptMember]);
}

/** Adds the total of the tokens to a reported usage object. Some servers leave the total out. Other members stay. */
export function withTotal(reported: unknown, usage: TokenUsage): Record<string, unknown> {
  return { ...(reported as object), total_tokens: usage.promptTokens + usage.completionTokens };
}

export function hasTotal(reported: unknown): boolean {
  return typeof (reported as { total_tokens?: unknown } | null)?.total_tokens === "number";
}

/** Returns the usage as an object in the form that clients expect. */
export function usageObject(
  usage: TokenUsage,
  { generates }: Pick<AnswerFormat, "generates">,
): Record<string, number | boolean> {
  return {
    prompt_tokens: usage.promptTokens,
    ...(generates ? { completion_tokens: usage.completionTokens } : {}),
    total_tokens: usage.promptTokens + usage.completionTokens,
    ...(usage.estimated ? { estimated: true } : {}),
  };
}

/**
 * Number of UTF-8 bytes in everything that a choice delivers: in a chunk (`delta`), in a whole answer (`message`), or
 * in the legacy member `text`.
 */
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
