// What a client is told when a limit or a quota refuses its request.
import type { CalendarMonth } from "../../base/calendar-month.ts";
import { GatewayError, type RefusalReason } from "../../base/errors.ts";
import type { Quota, RateLimit } from "./limits.ts";

const longestRetryMs = 60_000;

export type LimitKind = "requests" | "tokens";

/** The limit has no room for `needed` before `waitMs` have passed. */
export function rateLimitRefusal(kind: LimitKind, rule: RateLimit, needed: number, waitMs: number): GatewayError {
  const asked = kind === "tokens" ? ` This request needs ${needed}.` : "";
  return new GatewayError(
    "rate_limit_exceeded",
    `The rate limit of the ${rule.owner} is reached: ${rateOf(kind, rule)}.${asked} Retry in ${delayOf(waitMs)}.`,
    // SDKs do not wait longer than a minute or two, but try at once instead: then it is better that they do not.
    {
      retryAfterSeconds: waitMs / 1000,
      ...(waitMs > longestRetryMs ? { shouldRetry: false } : {}),
      refusal: reasonOf(kind, rule),
    },
  );
}

/** The limit would have no room for `needed` even when it is whole. */
export function neverFitsRefusal(kind: LimitKind, rule: RateLimit, needed: number): GatewayError {
  const fix = kind === "tokens" ? " Send a shorter prompt or a lower max_tokens; waiting does not help." : "";
  return new GatewayError(
    "rate_limit_exceeded",
    `This request needs ${needed} ${kind}, more than the rate limit of the ${rule.owner} allows at once: ${rateOf(kind, rule)}.${fix}`,
    { shouldRetry: false, refusal: reasonOf(kind, rule) },
  );
}

/** The figures of a quota when it refuses a request: whole tokens or nano-USD. */
export interface QuotaShortage {
  unit: "tokens" | "nanoUsd";
  limit: number;
  used: number;
  /** Set aside for requests that are still running. */
  held: number;
  /** The least that the request needs. */
  needed: number;
}

export function quotaRefusal(quota: Quota, month: CalendarMonth, shortage: QuotaShortage): GatewayError {
  const { unit, limit, used, held, needed } = shortage;
  const show = (amount: number) => (unit === "tokens" ? `${amount} tokens` : `${usd(amount)} USD`);
  const running = held > 0 ? `, and ${show(held)} are set aside for running requests` : "";
  return new GatewayError(
    "insufficient_quota",
    `This request needs at least ${show(needed)}, more than the monthly quota of the ${quota.owner} has left: ${show(used)} of ${show(limit)} are used in ${monthName(month)} (UTC)${running}. The quota resets at ${instant(month.end)}.`,
    { shouldRetry: false, refusal: `${quota.owner}_quota` },
  );
}

/** The usage so far could not be read, and without it nobody can say whether a quota allows the request. */
export function unreadUsageRefusal(cause: unknown): GatewayError {
  return new GatewayError("service_unavailable", "The usage of this month cannot be read now. Retry in 1 second.", {
    retryAfterSeconds: 1,
    detail: `quota usage: ${cause instanceof Error ? cause.message : String(cause)}`,
    cause,
  });
}

function reasonOf(kind: LimitKind, { owner }: RateLimit): RefusalReason {
  return `${owner}_${kind}`;
}

function rateOf(kind: LimitKind, { limit, windowSeconds }: RateLimit): string {
  return `${limit} ${limit === 1 ? kind.slice(0, -1) : kind} per ${windowName(windowSeconds)}`;
}

const windowNames = new Map([
  [1, "second"],
  [60, "minute"],
  [3600, "hour"],
  [86_400, "day"],
]);

function windowName(seconds: number): string {
  return windowNames.get(seconds) ?? `${seconds} seconds`;
}

/** Rounded up, so that whoever waits as long as the text says is not early. */
function delayOf(ms: number): string {
  const seconds = ms < 10_000 ? Math.ceil(ms / 100) / 10 : Math.ceil(ms / 1000);
  return seconds === 1 ? "1 second" : `${seconds} seconds`;
}

function usd(nanoUsd: number): string {
  const text = (nanoUsd / 1e9).toFixed(9).replace(/0+$/, "");
  const decimals = text.length - text.indexOf(".") - 1;
  return text + "0".repeat(Math.max(0, 2 - decimals));
}

function monthName({ start }: CalendarMonth): string {
  return new Date(start * 1000).toISOString().slice(0, 7);
}

function instant(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}
