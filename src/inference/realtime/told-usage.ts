// What a realtime server tells of the usage of a response, or of a transcript (OpenAI API reference, `response.done` and `conversation.item.input_audio_transcription.completed`; vLLM, `transcription.done`).

import type { TokenUsage } from "../../domain/usage/usage.ts";
import { isFarBelow } from "../../requests/dialects/least-usage.ts";
import { countOf, detailsOf, partsOf } from "../../requests/dialects/told-parts.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Tokens of a second of what a user says, as OpenAI counts them. */
const tokensOfSecond = 10;

/** Undefined where nothing is told. */
export function reportedUsage(usage: unknown): TokenUsage | undefined {
  if (!isJson(usage)) return undefined;
  if (usage["type"] === "duration") return ofDuration(usage["seconds"]);
  const promptTokens = countOf(usage["input_tokens"] ?? usage["prompt_tokens"]);
  const completionTokens = countOf(usage["output_tokens"] ?? usage["completion_tokens"]);
  if (promptTokens === undefined && completionTokens === undefined) return undefined;
  const input = memberOf(usage, "input_token_details");
  const output = memberOf(usage, "output_token_details");
  return {
    promptTokens: promptTokens ?? 0,
    completionTokens: completionTokens ?? 0,
    estimated: false,
    parts: partsOf({
      cachedTokens: countOf(input["cached_tokens"]),
      reasoningTokens: countOf(output["reasoning_tokens"]),
      details: detailsOf({
        // Those that came from the cache have a rate of their own, and are among both.
        inputAudioTokens: freshOf(input, "audio_tokens"),
        inputImageTokens: freshOf(input, "image_tokens"),
        outputAudioTokens: countOf(output["audio_tokens"]),
      }),
    }),
  };
}

/**
 * Returns the usage that a server told, with an estimate in place of a figure that cannot be: a server may tell nothing of
 * a prompt that was heard, or far less than it said.
 */
export function atLeastSaid(reported: TokenUsage, estimate: TokenUsage): TokenUsage {
  const { promptTokens, completionTokens } = reported;
  const isUnheard = promptTokens === 0 && estimate.promptTokens > 0;
  // A usage in seconds has no tokens of what was written.
  const isUndeclared = !reported.estimated && isFarBelow(completionTokens, estimate.completionTokens);
  if (!isUnheard && !isUndeclared) return reported;
  return {
    promptTokens: isUnheard ? estimate.promptTokens : promptTokens,
    completionTokens: isUndeclared ? estimate.completionTokens : completionTokens,
    estimated: true,
    understated: true,
    parts: isUnheard ? estimate.parts : reported.parts,
  };
}

function freshOf(input: Json, name: string): number | undefined {
  const all = countOf(input[name]);
  const cached = countOf(memberOf(input, "cached_tokens_details")[name]) ?? 0;
  return all === undefined ? undefined : Math.max(0, all - cached);
}

function ofDuration(seconds: unknown): TokenUsage | undefined {
  if (typeof seconds !== "number" || !(seconds >= 0) || seconds > 1e6) return undefined;
  const tokens = Math.ceil(seconds * tokensOfSecond);
  const parts = partsOf({ details: detailsOf({ inputAudioTokens: tokens }) });
  return { promptTokens: tokens, completionTokens: 0, estimated: true, parts };
}

export function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object without members where there is none. */
export function memberOf(value: Json, name: string): Json {
  const member = value[name];
  return isJson(member) ? member : nothing;
}

const nothing: Json = {};
