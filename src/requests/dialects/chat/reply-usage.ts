// Reads the token usage that model servers report, and writes usage for clients.
import type { ReplySink, ReplyUsage } from "../conversation/reply.ts";
import { billedOf, countOf, detailsOf, outputOf, servedOf } from "../reported-parts.ts";
import { isObject, type Json, objectOf } from "./json-value.ts";

/** Passes on the usage of a chunk or a whole answer. Groq has it in `x_groq`, and Moonshot in the choice. */
export function readUsage(data: Json, choice: Json | undefined, sink: ReplySink): void {
  const found = data["usage"] ?? objectOf(data["x_groq"])["usage"] ?? choice?.["usage"];
  if (!isObject(found)) return;
  const usage = chatUsage(found, data["service_tier"]);
  if (usage.promptTokens !== undefined || usage.completionTokens !== undefined) sink.usage(usage);
}

/** Returns the usage that a server reported. `tier` is the service tier that the answer reports. */
export function chatUsage(found: Json, tier: unknown): ReplyUsage {
  const prompt = objectOf(found["prompt_tokens_details"]);
  const completion = objectOf(found["completion_tokens_details"]);
  const promptTokens = countOf(found["prompt_tokens"]);
  const output = {
    completionTokens: countOf(found["completion_tokens"]),
    reasoningTokens: countOf(completion["reasoning_tokens"] ?? found["reasoning_tokens"]),
  };
  return {
    promptTokens,
    // The second name is DeepSeek's, the third is Moonshot's, and the fourth is LiteLLM's.
    cachedTokens: countOf(
      prompt["cached_tokens"] ??
        found["prompt_cache_hit_tokens"] ??
        found["cached_tokens"] ??
        found["cache_read_input_tokens"],
    ),
    // The first name is used by OpenAI and OpenRouter, the second by LiteLLM.
    cacheWriteTokens: countOf(prompt["cache_write_tokens"] ?? found["cache_creation_input_tokens"]),
    ...outputOf(promptTokens, output, countOf(found["total_tokens"])),
    details: detailsOf({
      inputAudioTokens: countOf(prompt["audio_tokens"]),
      inputImageTokens: countOf(prompt["image_tokens"]),
      outputAudioTokens: countOf(completion["audio_tokens"]),
      outputImageTokens: countOf(completion["image_tokens"]),
      // Mistral has `service_tier` inside the usage.
      served: servedOf(tier, found["service_tier"]),
      billedNanoUsd: billedOf(found),
    }),
  };
}

/** Returns the usage object for an answer. */
export function usageObject(usage: ReplyUsage): Json {
  const { promptTokens = 0, completionTokens = 0, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  const cached = cachedTokens === undefined ? {} : { cached_tokens: cachedTokens };
  const written = cacheWriteTokens === undefined ? {} : { cache_write_tokens: cacheWriteTokens };
  const prompt = { ...cached, ...written };
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(Object.keys(prompt).length > 0 ? { prompt_tokens_details: prompt } : {}),
    ...(reasoningTokens === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}
