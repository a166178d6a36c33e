// Converts the token figures of the Messages API. It reports cached tokens separately from the rest of the prompt.
import type { ReplyUsage } from "../conversation/reply.ts";
import { countOf, detailsOf, servedOf } from "../reported-parts.ts";
import { type Json, objectOf } from "./json.ts";

/** Adds reported figures to earlier ones. In a stream, the figures are cumulative, and `null` changes nothing. */
export class UsageReading {
  #input: number | undefined;
  #cacheRead: number | undefined;
  #cacheWrite: number | undefined;
  #cacheWriteHour: number | undefined;
  #output: number | undefined;
  #thinking: number | undefined;
  #searches: number | undefined;
  #served: readonly string[] | undefined;

  add(usage: unknown): ReplyUsage {
    const reported = objectOf(usage);
    this.#input = countOf(reported["input_tokens"]) ?? this.#input;
    this.#cacheRead = countOf(reported["cache_read_input_tokens"]) ?? this.#cacheRead;
    this.#cacheWrite = countOf(reported["cache_creation_input_tokens"]) ?? this.#cacheWrite;
    this.#cacheWriteHour = within(reported["cache_creation"], "ephemeral_1h_input_tokens") ?? this.#cacheWriteHour;
    this.#output = countOf(reported["output_tokens"]) ?? this.#output;
    this.#thinking = within(reported["output_tokens_details"], "thinking_tokens") ?? this.#thinking;
    this.#searches = within(reported["server_tool_use"], "web_search_requests") ?? this.#searches;
    // A server reports the service tier at the beginning of a message, but not at its end.
    this.#served = servedOf(reported["service_tier"], reported["speed"], reported["inference_geo"]) ?? this.#served;
    const input = this.#input;
    return {
      promptTokens: input === undefined ? undefined : input + (this.#cacheRead ?? 0) + (this.#cacheWrite ?? 0),
      cachedTokens: this.#cacheRead,
      cacheWriteTokens: this.#cacheWrite,
      completionTokens: this.#output,
      reasoningTokens: this.#thinking,
      details: detailsOf({
        cacheWriteHourTokens: this.#cacheWriteHour,
        searches: this.#searches,
        served: this.#served,
      }),
    };
  }
}

function within(value: unknown, name: string): number | undefined {
  return typeof value === "object" && value !== null ? countOf((value as Json)[name]) : undefined;
}

/** Returns the figures that a stream reports at its beginning and corrects at its end. */
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

/** Returns the usage for the event `message_delta`. `promptTokens` is used if the server reported no prompt tokens. */
export function deltaUsage(usage: ReplyUsage, promptTokens: number): Json {
  return changing(usage, promptTokens);
}

/**
 * Returns the reported usage, in which missing figures come from `counted`. If the usage has all figures that SDKs
 * read, returns the same object. If `counted` is undefined and the tokens of the answer are missing, returns undefined.
 */
export function strictUsage<Counted extends Json | undefined>(reported: unknown, counted: Counted): Json | Counted {
  const usage = objectOf(reported);
  const hasOutput = countOf(usage["output_tokens"]) !== undefined;
  if (hasOutput && (!counted || countOf(usage["input_tokens"]) !== undefined)) return usage;
  if (!counted) return counted;
  const known = Object.entries(usage).filter(([, value]) => value !== null && value !== undefined);
  return {
    ...counted,
    ...Object.fromEntries(known.filter(([name, value]) => !name.endsWith("_tokens") || countOf(value) !== undefined)),
  };
}

/**
 * Returns the usage of a message. SDKs have all of these members since version 1.0, so they are present even if empty.
 */
export function messageUsage(usage: ReplyUsage, promptTokens: number): Json {
  return {
    ...changing(usage, promptTokens),
    cache_creation: null,
    inference_geo: null,
    service_tier: null,
    speed: null,
  };
}
