// Marks of what of a prompt is worth keeping, as clients of OpenAI's formats set them.
import type { Cache } from "./conversation.ts";

/**
 * Anthropic's own mark, which clients of LiteLLM and OpenRouter send within OpenAI's formats, or OpenAI's. Where that says how
 * long, it is for half an hour at least, of which Anthropic has an hour.
 */
export function cacheOf(holder: Readonly<Record<string, unknown>>): Cache | undefined {
  const { cache_control: cache, prompt_cache_breakpoint: point } = holder;
  if (isObject(cache)) return cache;
  if (!isObject(point)) return undefined;
  return point["ttl"] === undefined || point["ttl"] === null ? { type: "ephemeral" } : { type: "ephemeral", ttl: "1h" };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
