// Reads the usage of a response or transcript in the form in which a realtime server reports it (OpenAI API reference,
// `response.done` and `conversation.item.input_audio_transcription.completed`; vLLM, `transcription.done`).

import type { TokenUsage } from "../../domain/usage/usage.ts";
import { isFarBelow } from "../../requests/dialects/least-usage.ts";
import { countOf, detailsOf, partsOf } from "../../requests/dialects/reported-parts.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Tokens per second of user speech, in the way OpenAI counts them. */
const tokensOfSecond = 10;

/** Returns the usage of a response or transcript, or undefined if none is reported. */
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
        // Both figures include cached audio tokens, which have their own rate and so are subtracted.
        inputAudioTokens: freshOf(input, "audio_tokens"),
        inputImageTokens: freshOf(input, "image_tokens"),
        outputAudioTokens: countOf(output["audio_tokens"]),
      }),
    }),
  };
}

/**
 * Returns the reported usage. Impossible figures are replaced by the estimate, because some servers omit the audio
 * prompt or report far less than they generated.
 */
export function atLeastSaid(reported: TokenUsage, estimate: TokenUsage): TokenUsage {
  const { promptTokens, completionTokens } = reported;
  const isUnheard = promptTokens === 0 && estimate.promptTokens > 0;
  // A usage that was reported in seconds of audio contains no text tokens, so their number is not checked.
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

/** Returns the member if it is an object. Otherwise returns an empty object. */
export function memberOf(value: Json, name: string): Json {
  const member = value[name];
  return isJson(member) ? member : nothing;
}

const nothing: Json = {};
