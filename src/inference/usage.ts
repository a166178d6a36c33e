// Token usage of one request: what the engine reports, or an estimate from the text.
import type { Operation } from "../domain/engine.ts";
import type { TokenUsage } from "../domain/usage.ts";

/** Rough and language-dependent, but never zero; only used where an engine reports nothing. */
const bytesPerToken = 4;

/** The usage object of a response or chunk, or undefined where it is absent or not whole numbers. */
export function reportedUsage(value: unknown): TokenUsage | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { prompt_tokens, completion_tokens } = value as Record<string, unknown>;
  const completionTokens = completion_tokens ?? 0;
  if (!isCount(prompt_tokens) || !isCount(completionTokens)) return undefined;
  return { promptTokens: prompt_tokens, completionTokens, estimated: false };
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

/** Prompt tokens estimated from the texts of a request; images and other media are not counted. */
export function estimatePromptTokens(request: Readonly<Record<string, unknown>>): number {
  const prompt = request["messages"] ?? request["prompt"] ?? request["input"];
  return countTokens(prompt);
}

function countTokens(value: unknown): number {
  if (typeof value === "string") return estimateTokens(Buffer.byteLength(value));
  if (typeof value === "number") return 1;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countTokens(item), 0);
  if (typeof value !== "object" || value === null) return 0;
  const { content, text } = value as { content?: unknown; text?: unknown };
  return countTokens(content) + countTokens(text);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
