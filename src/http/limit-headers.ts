// The state of the rate limits as response headers.
import type { LimitStatus } from "../domain/limits.ts";

const kinds = ["requests", "tokens"] as const;

/** `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`; a kind without a limit is left out. */
export function limitHeaders(status: LimitStatus): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const kind of kinds) {
    const state = status[kind];
    if (!state) continue;
    headers[`x-ratelimit-limit-${kind}`] = String(state.limit);
    headers[`x-ratelimit-remaining-${kind}`] = String(state.remaining);
    headers[`x-ratelimit-reset-${kind}`] = duration(state.resetMs);
  }
  return headers;
}

/**
 * As Go writes durations (`12ms`, `1s`, `6m0s`, `1h2m3s`), which is what OpenAI sends. Rounded up, and in whole numbers
 * only: a client that reads digits and units with a simple pattern would take `1.5s` for five seconds.
 */
export function duration(ms: number): string {
  if (ms <= 0) return "0s";
  const wholeMs = Math.ceil(ms);
  if (wholeMs < 1_000) return `${wholeMs}ms`;
  const total = Math.ceil(wholeMs / 1_000);
  const hours = Math.floor(total / 3_600);
  const minutes = Math.floor((total % 3_600) / 60);
  const seconds = `${total % 60}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
