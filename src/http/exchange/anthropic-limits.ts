// Rate-limit headers in the format of Anthropic's API.
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { AnswerHeaders } from "./route.ts";

/**
 * Adds the headers `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`. If there is no limit for requests
 * or for tokens, its headers are left out. `nowMs` is in Unix milliseconds.
 */
export function anthropicLimitHeaders({ requests, tokens }: LimitStatus, nowMs: number, headers: AnswerHeaders): void {
  if (requests) {
    headers["anthropic-ratelimit-requests-limit"] = requests.limit;
    headers["anthropic-ratelimit-requests-remaining"] = requests.remaining;
    headers["anthropic-ratelimit-requests-reset"] = moment(nowMs + requests.resetMs);
  }
  if (tokens) {
    headers["anthropic-ratelimit-tokens-limit"] = tokens.limit;
    headers["anthropic-ratelimit-tokens-remaining"] = tokens.remaining;
    headers["anthropic-ratelimit-tokens-reset"] = moment(nowMs + tokens.resetMs);
  }
}

/** Caches the last four formatted times, because requests within one second usually need the same texts. */
const lastMoments = Array.from({ length: 4 }, () => ({ seconds: -1, text: "" }));
let oldest = 0;

/** Formats a time as RFC 3339 in whole seconds, rounded up, so that a client that waits until then is not refused. */
function moment(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  for (const last of lastMoments) if (last.seconds === seconds) return last.text;
  const text = new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
  lastMoments[oldest] = { seconds, text };
  oldest = (oldest + 1) % lastMoments.length;
  return text;
}
