// What of a request is needed on its way: what it can cost at most, as far as that is known before it is sent, and what it asks for.

import { fieldError } from "../base/errors.ts";
import type { Operation } from "../domain/models/engine.ts";
import type { Model } from "../domain/models/model.ts";
import { countTexts, noTokenLimit } from "../wire/parts.ts";
import { estimatePromptTokens, isMediaPart } from "./answer/usage.ts";
import type { DecodedRequest } from "./decoded-request.ts";

export interface RequestFacts {
  /** Estimated from the text. */
  promptTokens: number;
  /** Per generation; undefined where the request sets no limit. */
  maxCompletionTokens: number | undefined;
  /** Generations side by side. */
  width: number;
  /** Of the whole request: no prompt has more tokens than bytes, unless it has media. */
  bodyBytes: number;
  /** Whether it carries images, audio or files, whose tokens the text does not tell. */
  hasMedia: boolean;
}

/** Members of the body that every engine gets in another way, as JSON; null: left out. */
export type Corrections = Readonly<Record<string, string | null>>;

/** `max_completion_tokens` counts; an engine that takes the other name for it must not be told of two. */
export const newerLimitAlone: Corrections = { max_tokens: null };

/** What is noted of a body when it is checked. */
export interface RequestMarks {
  model: string;
  /** Offsets of its value in the bytes; both 0 where nobody looked. */
  modelStart: number;
  modelEnd: number;
  stream: boolean;
  /** Whether they are there, and ask for usage. */
  streamOptions: "none" | "usage" | "other";
  width: number;
  promptTokens: number;
  /** Of the completion; by the name of the member that counts where both are there. */
  tokenLimit: number | undefined;
  tokenLimitName: "max_completion_tokens" | "max_tokens";
  /** Undefined where there are none. */
  corrections: Corrections | undefined;
  hasMedia: boolean;
  /** Whether the client wants the completion kept, where it says so. */
  store: boolean | null | undefined;
}

export function marksOf(operation: Operation, body: Readonly<Record<string, unknown>>): RequestMarks {
  const { max_completion_tokens, max_tokens, stream_options: options, store } = body;
  const newer = limitOf(max_completion_tokens);
  return {
    model: body["model"] as string,
    modelStart: 0,
    modelEnd: 0,
    stream: operation !== "embedding" && body["stream"] === true,
    streamOptions: options === undefined ? "none" : asksForUsage(options) ? "usage" : "other",
    width: widthOf(operation, body),
    promptTokens: estimatePromptTokens(operation, body),
    tokenLimit: newer ?? limitOf(max_tokens),
    tokenLimitName: newer === undefined ? "max_tokens" : "max_completion_tokens",
    corrections: correctionsOf(operation, body, newer),
    hasMedia:
      operation === "chat" ? hasMedia(body["messages"]) : operation === "embedding" && hasObjects(body["input"]),
    store: typeof store === "boolean" || store === null ? store : undefined,
  };
}

/** Throws `invalid_request` for a token limit that the model's context cannot hold. */
export function requireContext(model: Model, { tokenLimit, tokenLimitName }: DecodedRequest): void {
  if (model.context === undefined || tokenLimit === undefined) return;
  if (tokenLimit > model.context) {
    throw fieldError(
      tokenLimitName,
      `must be at most ${model.context}, the context of \`${model.id}\` in tokens (got ${tokenLimit}).`,
    );
  }
}

/** Of a token limit that is no number, or says that there is none, nothing counts. */
function limitOf(value: unknown): number | undefined {
  return typeof value === "number" && value !== noTokenLimit ? value : undefined;
}

/**
 * What means the same left out is left out, as many a server refuses it: no token limit in words of its own, an empty
 * stop. Servers of the legacy endpoint know a token limit by its older name alone, and would not be held to the newer.
 */
function correctionsOf(
  operation: Operation,
  body: Readonly<Record<string, unknown>>,
  newer: number | undefined,
): Corrections | undefined {
  if (operation === "embedding") return undefined;
  const result: Record<string, string | null> = {};
  for (const name of ["max_completion_tokens", "max_tokens"]) if (body[name] === noTokenLimit) result[name] = null;
  if (body["stop"] === "") result["stop"] = null;
  if (newer !== undefined && operation === "completion") {
    result["max_completion_tokens"] = null;
    result["max_tokens"] = String(newer);
  } else if (newer !== undefined && body["max_tokens"] !== undefined) result["max_tokens"] = null;
  return Object.keys(result).length === 0 ? undefined : result;
}

export function asksForUsage(options: unknown): boolean {
  return (options as { include_usage?: unknown } | null)?.include_usage === true;
}

/** Generations that run side by side for one request. */
function widthOf(operation: Operation, body: Readonly<Record<string, unknown>>): number {
  if (operation === "embedding") return 1;
  const choices = Math.max(count(body["n"]), count(body["best_of"]));
  return operation === "completion" ? choices * countTexts(body["prompt"]) : choices;
}

function count(value: unknown): number {
  return typeof value === "number" ? value : 1;
}

function hasMedia(messages: unknown): boolean {
  if (!Array.isArray(messages)) return false;
  for (const { content } of messages as { content?: unknown }[]) {
    if (!Array.isArray(content)) continue;
    if (content.some(isMediaPart)) return true;
  }
  return false;
}

function hasObjects(input: unknown): boolean {
  const items: readonly unknown[] = Array.isArray(input) ? input : [input];
  return items.some((item) => typeof item === "object" && !Array.isArray(item));
}
