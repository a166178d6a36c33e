// Reads cache marks in the formats of OpenAI's clients.
import type { Cache } from "./conversation.ts";

/**
 * Returns Anthropic's own mark, which clients of LiteLLM and OpenRouter send within OpenAI's formats, or OpenAI's
 * converted to it. OpenAI's `ttl` is at least half an hour; Anthropic's closest value is one hour.
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
