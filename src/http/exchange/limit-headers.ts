// Rate-limit headers of answers.
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { AnswerHeaders } from "./route.ts";

/**
 * Adds the headers `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`. If there is no limit for requests or for
 * tokens, its headers are left out.
 */
export function limitHeaders({ requests, tokens }: LimitStatus, headers: AnswerHeaders): void {
  if (requests) {
    headers["x-ratelimit-limit-requests"] = requests.limit;
    headers["x-ratelimit-remaining-requests"] = requests.remaining;
    headers["x-ratelimit-reset-requests"] = duration(requests.resetMs);
  }
  if (tokens) {
    headers["x-ratelimit-limit-tokens"] = tokens.limit;
    headers["x-ratelimit-remaining-tokens"] = tokens.remaining;
    headers["x-ratelimit-reset-tokens"] = duration(tokens.resetMs);
  }
}

/**
 * Texts of the durations below a second, which are the most frequent. Equal durations share one string, so that
 * comparing them is fast.
 */
const belowSecond: readonly string[] = Array.from({ length: 1_000 }, (_, ms) => `${ms}ms`);

/**
 * Formats milliseconds as OpenAI does (`12ms`, `1s`, `6m0s`, `1h2m3s`). All numbers are rounded up to whole ones,
 * because some clients would misread `1.5s` as five seconds.
 */
export function duration(ms: number): string {
  if (ms <= 0) return "0s";
  const wholeMs = Math.ceil(ms);
  if (wholeMs < 1_000) return belowSecond[wholeMs] ?? "";
  const total = Math.ceil(wholeMs / 1_000);
  const hours = Math.floor(total / 3_600);
  const minutes = Math.floor((total % 3_600) / 60);
  const seconds = `${total % 60}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
