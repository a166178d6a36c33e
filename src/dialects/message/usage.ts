// Token figures as Messages tells them: what was read from and written to the cache stands beside the rest of the prompt.
import type { ReplyUsage } from "../conversation/reply.ts";
import { countOf, detailsOf, servedOf } from "../told-parts.ts";
import { type Json, objectOf } from "./json.ts";

/** Adds what an engine tells to what it told before: figures of a stream are of all of it so far, and `null` says nothing. */
export class UsageReading {
  readonly #told = new Map<string, number>();
  #served: readonly string[] | undefined;

  add(usage: unknown): ReplyUsage {
    const { output_tokens_details, cache_creation, server_tool_use, ...figures } = objectOf(usage);
    const counts = { ...figures, ...objectOf(output_tokens_details), ...objectOf(cache_creation) };
    for (const [name, value] of Object.entries({ ...counts, ...objectOf(server_tool_use) })) {
      const count = countOf(value);
      if (count !== undefined) this.#told.set(name, count);
    }
    // Told where a message begins, and not again at its end.
    this.#served = servedOf(figures["service_tier"], figures["speed"], figures["inference_geo"]) ?? this.#served;
    const input = this.#told.get("input_tokens");
    const cachedTokens = this.#told.get("cache_read_input_tokens");
    const cacheWriteTokens = this.#told.get("cache_creation_input_tokens");
    return {
      promptTokens: input === undefined ? undefined : input + (cachedTokens ?? 0) + (cacheWriteTokens ?? 0),
      cachedTokens,
      cacheWriteTokens,
      completionTokens: this.#told.get("output_tokens"),
      reasoningTokens: this.#told.get("thinking_tokens"),
      details: detailsOf({
        cacheWriteHourTokens: this.#told.get("ephemeral_1h_input_tokens"),
        searches: this.#told.get("web_search_requests"),
        served: this.#served,
      }),
    };
  }
}

/** The figures that a stream begins with and corrects at its end. */
function changing(usage: ReplyUsage, promptTokens: number): Json {
  const { cachedTokens = 0, cacheWriteTokens = 0, completionTokens = 0, reasoningTokens } = usage;
  return {
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    input_tokens: Math.max(0, (usage.promptTokens ?? promptTokens) - cachedTokens - cacheWriteTokens),
    output_tokens: completionTokens,
    output_tokens_details: reasoningTokens === undefined ? null : { thinking_tokens: reasoningTokens },
    server_tool_use: null,
  };
}

/** The usage of `message_delta`. `promptTokens`: where the engine told none. */
export function deltaUsage(usage: ReplyUsage, promptTokens: number): Json {
  return changing(usage, promptTokens);
}

/** The usage of a message. SDKs since 1.0 have all of these members, empty or not. */
export function messageUsage(usage: ReplyUsage, promptTokens: number): Json {
  return {
    ...changing(usage, promptTokens),
    cache_creation: null,
    inference_geo: null,
    service_tier: null,
    speed: null,
  };
}
