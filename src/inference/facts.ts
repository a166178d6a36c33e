// What a request can cost at most, as far as that is known before it is sent.
import { GatewayError } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
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

export function factsOf(request: DecodedRequest): RequestFacts {
  const { body, operation } = request;
  const limit = operation === "embedding" ? 0 : (body["max_completion_tokens"] ?? body["max_tokens"]);
  return {
    promptTokens: estimatePromptTokens(body),
    maxCompletionTokens: typeof limit === "number" ? limit : undefined,
    width: request.width,
    bodyBytes: request.bytes.byteLength,
    hasMedia: hasMedia(body["messages"]),
  };
}

/** Throws `invalid_request` for a token limit that the model's context cannot hold. */
export function requireContext(model: Model, { body }: DecodedRequest): void {
  if (model.context === undefined) return;
  const name = body["max_completion_tokens"] != null ? "max_completion_tokens" : "max_tokens";
  const limit = body[name];
  if (typeof limit === "number" && limit > model.context) {
    throw new GatewayError(
      "invalid_request",
      `${name}: must be at most ${model.context}, the context of \`${model.id}\` in tokens (got ${limit}).`,
    );
  }
}

function hasMedia(messages: unknown): boolean {
  if (!Array.isArray(messages)) return false;
  for (const { content } of messages as { content?: unknown }[]) {
    if (!Array.isArray(content)) continue;
    for (const { type } of content as { type?: unknown }[]) if (type !== "text" && type !== "refusal") return true;
  }
  return false;
}
