// Token figures as Messages tells them: what was read from and written to the cache stands beside the rest of the prompt.
import type { ReplyUsage } from "../conversation/reply.ts";
import { countOf, detailsOf, servedOf } from "../told-parts.ts";
import { type Json, objectOf } from "./json.ts";

/** Adds what an engine tells to what it told before: figures of a stream are of all of it so far, and `null` says nothing. */
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
    const told = objectOf(usage);
    this.#input = countOf(told["input_tokens"]) ?? this.#input;
    this.#cacheRead = countOf(told["cache_read_input_tokens"]) ?? this.#cacheRead;
    this.#cacheWrite = countOf(told["cache_creation_input_tokens"]) ?? this.#cacheWrite;
    this.#cacheWriteHour = within(told["cache_creation"], "ephemeral_1h_input_tokens") ?? this.#cacheWriteHour;
    this.#output = countOf(told["output_tokens"]) ?? this.#output;
    this.#thinking = within(told["output_tokens_details"], "thinking_tokens") ?? this.#thinking;
    this.#searches = within(told["server_tool_use"], "web_search_requests") ?? this.#searches;
    // Told where a message begins, and not again at its end.
    this.#served = servedOf(told["service_tier"], told["speed"], told["inference_geo"]) ?? this.#served;
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

/**
 * Returns the usage that a server told, with the figures of `counted` in place of those that it left out; the same object
 * where it has the figures that SDKs read. Without `counted` undefined where it lacks the tokens of the answer.
 */
export function strictUsage<Counted extends Json | undefined>(told: unknown, counted: Counted): Json | Counted {
  const usage = objectOf(told);
  const hasOutput = countOf(usage["output_tokens"]) !== undefined;
  if (hasOutput && (!counted || countOf(usage["input_tokens"]) !== undefined)) return usage;
  if (!counted) return counted;
  const known = Object.entries(usage).filter(([, value]) => value !== null && value !== undefined);
  return {
    ...counted,
    ...Object.fromEntries(known.filter(([name, value]) => !name.endsWith("_tokens") || countOf(value) !== undefined)),
  };
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
