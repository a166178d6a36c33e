// Tests the rate-limit headers: their values, the headers that are left out, and durations that clients can parse.
import { expect, test } from "bun:test";
import type { LimitStatus } from "../../domain/limits/limits.ts";
import { duration, limitHeaders } from "./limit-headers.ts";
import type { AnswerHeaders } from "./route.ts";

function headersOf(status: LimitStatus): AnswerHeaders {
  const headers: AnswerHeaders = {};
  limitHeaders(status, headers);
  return headers;
}

test("writes limit, remaining and reset for each limited kind only", () => {
  const requests = { limit: 100, remaining: 99, resetMs: 600 };
  expect(headersOf({ requests, tokens: undefined })).toEqual({
    "x-ratelimit-limit-requests": 100,
    "x-ratelimit-remaining-requests": 99,
    "x-ratelimit-reset-requests": "600ms",
  });
  expect(headersOf({ requests, tokens: { limit: 10_000, remaining: 0, resetMs: 360_000 } })).toMatchObject({
    "x-ratelimit-limit-tokens": 10_000,
    "x-ratelimit-remaining-tokens": 0,
    "x-ratelimit-reset-tokens": "6m0s",
  });
  expect(headersOf({ requests: undefined, tokens: undefined })).toEqual({});
});

test("writes durations in the form of Go and OpenAI", () => {
  const cases: [number, string][] = [
    [0, "0s"],
    [12, "12ms"],
    [999, "999ms"],
    [1_000, "1s"],
    [59_000, "59s"],
    [60_000, "1m0s"],
    [360_000, "6m0s"],
    [3_600_000, "1h0m0s"],
    [3_723_000, "1h2m3s"],
    [90_000_000, "25h0m0s"],
  ];
  for (const [ms, text] of cases) expect(duration(ms)).toBe(text);
});

test("rounds durations up to whole numbers, so that no client returns too early", () => {
  const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
  for (const ms of [0.2, 1.5, 998.1, 999.5, 1_000.4, 1_499, 59_999.9, 119_001, 3_599_001, 3_600_001, 86_399_999]) {
    const text = duration(ms);
    expect(text).toMatch(/^(\d+h)?(\d+m)?(\d+s|\d+ms)$/);
    let read = 0;
    for (const [, digits, unit] of text.matchAll(/(\d+)(ms|[hms])/g)) read += Number(digits) * (units[unit ?? ""] ?? 0);
    expect(read).toBeGreaterThanOrEqual(ms);
    expect(read - ms).toBeLessThan(ms < 1_000 ? 1.5 : 1_000);
  }
});
