// What of a request is needed on its way: what it can cost at most, as far as that is known before it is sent, and what it asks for.
import type { Operation } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import { countTexts, type TextOrTokens } from "../domain/wire.ts";
import type { DecodedRequest } from "./decoded-request.ts";
import { estimatePromptTokens } from "./usage.ts";

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
  hasBothLimits: boolean;
  hasMedia: boolean;
  /** Whether the client wants the completion kept, where it says so. */
  store: boolean | null | undefined;
}

export function marksOf(operation: Operation, body: Readonly<Record<string, unknown>>): RequestMarks {
  const { max_completion_tokens: newer, max_tokens: older, stream_options: options, store } = body;
  const limit = newer ?? older;
  return {
    model: body["model"] as string,
    modelStart: 0,
    modelEnd: 0,
    stream: operation !== "embedding" && body["stream"] === true,
    streamOptions: options === undefined ? "none" : asksForUsage(options) ? "usage" : "other",
    width: widthOf(operation, body),
    promptTokens: estimatePromptTokens(operation, body),
    tokenLimit: typeof limit === "number" ? limit : undefined,
    tokenLimitName: isThere(newer) ? "max_completion_tokens" : "max_tokens",
    hasBothLimits: isThere(newer) && older !== undefined,
    hasMedia: operation === "chat" && hasMedia(body["messages"]),
    store: typeof store === "boolean" || store === null ? store : undefined,
  };
}

/** Throws `invalid_request` for a token limit that the model's context cannot hold. */
export function requireContext(model: Model, { tokenLimit, tokenLimitName }: DecodedRequest): void {
  if (model.context === undefined || tokenLimit === undefined) return;
  if (tokenLimit > model.context) {
    throw new GatewayError(
      "invalid_request",
      `${tokenLimitName}: must be at most ${model.context}, the context of \`${model.id}\` in tokens (got ${tokenLimit}).`,
    );
  }
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

export function asksForUsage(options: unknown): boolean {
  return (options as { include_usage?: unknown } | null)?.include_usage === true;
}

/** Generations that run side by side for one request. */
function widthOf(operation: Operation, body: Readonly<Record<string, unknown>>): number {
  if (operation === "embedding") return 1;
  const choices = Math.max(count(body["n"]), operation === "completion" ? count(body["best_of"]) : 1);
  return operation === "completion" ? choices * countTexts(body["prompt"] as TextOrTokens) : choices;
}

function count(value: unknown): number {
  return typeof value === "number" ? value : 1;
}

function hasMedia(messages: unknown): boolean {
  if (!Array.isArray(messages)) return false;
  for (const { content } of messages as { content?: unknown }[]) {
    if (!Array.isArray(content)) continue;
    for (const { type } of content as { type?: unknown }[]) if (type !== "text" && type !== "refusal") return true;
  }
  return false;
}
