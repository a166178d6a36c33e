// The errors that clients get if a limit or quota refuses a request.
import { GatewayError, type QuotaReason, type RefusalReason, type SpentQuota } from "../../base/errors.ts";
import { usdOf, usdText } from "../../base/money.ts";
import type { Quota, RateLimit } from "./limits.ts";
import { type Period, spanText } from "./quota-rules.ts";

const maxRetryMs = 60_000;

export type LimitKind = "requests" | "tokens";

/** Returns the error for a limit that has no room for `needed` now, but will have room after `waitMs`. */
export function rateLimitRefusal(kind: LimitKind, rule: RateLimit, needed: number, waitMs: number): GatewayError {
  const asked = kind === "tokens" ? ` This request needs ${needed}.` : "";
  return new GatewayError(
    "rate_limit_exceeded",
    `The rate limit of the ${rule.owner} is reached: ${rateOf(kind, rule)}.${asked} Retry in ${delayOf(waitMs)}.`,
    // SDKs do not wait longer than a minute or two: they would retry immediately. So for longer waits, the answer tells
    // them not to retry.
    {
      retryAfterSeconds: waitMs / 1000,
      ...(waitMs > maxRetryMs ? { shouldRetry: false } : {}),
      refusal: reasonOf(kind, rule),
    },
  );
}

/** Returns the error for a limit that is smaller than `needed` even when it is full. */
export function neverFitsRefusal(kind: LimitKind, rule: RateLimit, needed: number): GatewayError {
  const fix = kind === "tokens" ? " Send a shorter prompt or a lower max_tokens; waiting does not help." : "";
  return new GatewayError(
    "rate_limit_exceeded",
    `This request needs ${grouped(needed)} ${kind}, more than the rate limit of the ${rule.owner} allows at once: ${rateOf(kind, rule)}.${fix}`,
    { shouldRetry: false, refusal: reasonOf(kind, rule) },
  );
}

/** The state of a quota that refused a request, in whole requests, tokens or nano-USD. */
export interface QuotaShortage {
  unit: "requests" | "tokens" | "nanoUsd";
  limit: number;
  used: number;
  /** The amount that is reserved for running requests. */
  held: number;
  /** The minimum that the request needs. */
  needed: number;
}

/** Returns the error of a used-up quota. `period` is undefined if the window of a rolling quota has not begun. */
export function quotaRefusal(quota: Quota, period: Period | undefined, shortage: QuotaShortage): GatewayError {
  const { unit, limit, used, held, needed } = shortage;
  const running = held > 0 ? `, and ${shown(unit, held)} are set aside for running requests` : "";
  const asked =
    unit === "requests" || needed === 0 ? "This request is" : `This request needs at least ${shown(unit, needed)},`;
  return new GatewayError(
    "insufficient_quota",
    `${asked} more than ${nameOf(quota)} has left: ${shown(unit, used)} of ${shown(unit, limit)} are used${when(quota, period)}${running}.${reset(period)} Ask ${whomToAsk(quota)} for more.`,
    { shouldRetry: false, refusal: quotaReason(quota), quota: spentQuota(quota, period, shortage) },
  );
}

type Named = Pick<Quota, "owner" | "called" | "filter">;

/** Returns the name of a quota in errors, metrics and pages, such as `key_quota` or `tag_quota`. */
export function quotaReason({ owner, called, filter }: Named): QuotaReason {
  if (called === "end_user") return "end_user_quota";
  return filter?.tag === undefined ? `${called ?? owner}_quota` : "tag_quota";
}

const raisers = {
  account: "an operator of this server",
  organization: "an operator of this server",
  key: "the owner of the key",
  member: "an owner or admin of the account",
  app: "the person who allowed the app",
  end_user: "an owner or admin of the account",
} as const;

/** Returns the people who can raise the quota. */
export function whomToAsk({ owner, called }: Named): string {
  return raisers[called ?? owner];
}

function nameOf({ owner, called, window, filter }: Quota): string {
  if (window === undefined) return `the monthly quota of the ${called ?? owner}`;
  const models = filter?.models === undefined ? "" : ` for ${listOf(filter.models)}`;
  const tag = filter?.tag === undefined ? "" : ` with the tag ${filter.tag}`;
  if (called === "end_user") return `the quota of the end user${models}${tag} per ${spanText(window.per)}`;
  return `the quota of the ${called ?? owner}${models}${tag} per ${spanText(window.per)}`;
}

const maxShownModels = 5;

function listOf(models: readonly string[]): string {
  return models.slice(0, maxShownModels).join(", ") + (models.length > maxShownModels ? ", …" : "");
}

function when({ window }: Quota, period: Period | undefined): string {
  if (period === undefined) return "";
  return window === undefined ? ` in ${monthName(period)} (UTC)` : ` since ${instant(period.start)}`;
}

function reset(period: Period | undefined): string {
  return period === undefined ? " Waiting does not help." : ` The quota resets at ${instant(period.end)}.`;
}

function spentQuota(quota: Quota, period: Period | undefined, shortage: QuotaShortage): SpentQuota {
  const { window, filter } = quota;
  const usd = shortage.unit === "nanoUsd";
  const figure = (amount: number) => (usd ? usdOf(amount) : amount);
  return {
    reason: quotaReason(quota),
    owner: quota.called ?? quota.owner,
    unit: shortage.unit === "nanoUsd" ? "usd" : shortage.unit,
    limit: figure(shortage.limit),
    used: figure(shortage.used),
    reserved: figure(shortage.held),
    needed: figure(shortage.needed),
    per: window?.per ?? "month",
    window: window?.kind ?? "calendar",
    models: filter?.models ? [...filter.models] : null,
    tag: filter?.tag ?? null,
    starts_at: period?.start ?? null,
    resets_at: period?.end ?? null,
    ask: whomToAsk(quota),
  };
}

function shown(unit: QuotaShortage["unit"], amount: number): string {
  if (unit === "nanoUsd") return `${usdText(amount, 2)} USD`;
  return unit === "requests" && amount === 1 ? "1 request" : `${grouped(amount)} ${unit}`;
}

/** Returns a number with commas between the thousands: `100,195`. */
function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Returns the error for usage that could not be read, so that the quota cannot be checked. */
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
  return `${grouped(limit)} ${limit === 1 ? kind.slice(0, -1) : kind} per ${windowName(windowSeconds)}`;
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

/** Rounds up, so that a client that waits this long is not early. */
function delayOf(ms: number): string {
  const seconds = ms < 10_000 ? Math.ceil(ms / 100) / 10 : Math.ceil(ms / 1000);
  return seconds === 1 ? "1 second" : `${seconds} seconds`;
}

function monthName({ start }: Period): string {
  return new Date(start * 1000).toISOString().slice(0, 7);
}

function instant(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}
