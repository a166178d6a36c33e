// The state of the rate limits as headers in the form of Anthropic's API.
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { AnswerHeaders } from "./route.ts";

/**
 * Adds `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`; a kind without a limit is left out. Resets are moments
 * in RFC 3339. `nowMs`: Unix milliseconds.
 */
export function anthropicLimitHeaders({ requests, tokens }: LimitStatus, nowMs: number, headers: AnswerHeaders): void {
  for (const [kind, status] of [
    ["requests", requests],
    ["tokens", tokens],
  ] as const) {
    if (!status) continue;
    headers[`anthropic-ratelimit-${kind}-limit`] = status.limit;
    headers[`anthropic-ratelimit-${kind}-remaining`] = status.remaining;
    // Whole seconds, rounded up: who waits until then is let in.
    const resetMs = Math.ceil((nowMs + status.resetMs) / 1000) * 1000;
    headers[`anthropic-ratelimit-${kind}-reset`] = new Date(resetMs).toISOString().replace(".000Z", "Z");
  }
}
