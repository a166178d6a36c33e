// The state of the rate limits as response headers.
import type { LimitStatus } from "../domain/limits.ts";

/** Adds `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` to the headers; a kind without a limit is left out. */
export function limitHeaders(
  { requests, tokens }: LimitStatus,
  headers: Record<string, string> = {},
): Record<string, string> {
  if (requests) {
    headers["x-ratelimit-limit-requests"] = String(requests.limit);
    headers["x-ratelimit-remaining-requests"] = String(requests.remaining);
    headers["x-ratelimit-reset-requests"] = duration(requests.resetMs);
  }
  if (tokens) {
    headers["x-ratelimit-limit-tokens"] = String(tokens.limit);
    headers["x-ratelimit-remaining-tokens"] = String(tokens.remaining);
    headers["x-ratelimit-reset-tokens"] = duration(tokens.resetMs);
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
