// Reads cache marks in requests that have the formats of OpenAI's API.
import type { Cache } from "./conversation.ts";

/**
 * Returns the cache mark. Clients of LiteLLM and OpenRouter send Anthropic's mark within OpenAI's formats. OpenAI's own
 * mark is converted to Anthropic's. OpenAI's `ttl` is at least half an hour, and Anthropic's closest value is one hour.
 */
export function cacheOf(item: Readonly<Record<string, unknown>>): Cache | undefined {
  const { cache_control: cache, prompt_cache_breakpoint: point } = item;
  if (isObject(cache)) return cache;
  if (!isObject(point)) return undefined;
  return point["ttl"] === undefined || point["ttl"] === null ? { type: "ephemeral" } : { type: "ephemeral", ttl: "1h" };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
