// A set of limits in the form of the shared store's scripts: keys and figures as texts, made once for each set.
import { calendarMonthOf } from "../base/calendar-month.ts";
import type { LimitSet, Quota, RateLimit } from "../domain/limits/limits.ts";
import { calendarPeriod, type Period } from "../domain/limits/quota-rules.ts";
import { isLimited } from "./limit-decision.ts";

export interface LimitPlan {
  /** Unix seconds for which the keys' calendar windows are current. */
  time: Period;
  /** Keys of request buckets, token buckets, and quotas with a limit. */
  keys: readonly string[];
  /** The number of each, then their figures. */
  figures: readonly string[];
  /** The arguments of later messages: token buckets with their figures, without quotas. */
  lease: readonly string[];
  /** All quotas and their keys. */
  quotas: readonly Quota[];
  quotaKeys: readonly string[];
  /** Indexes of the quotas with a limit, and of those that end answers. */
  limited: readonly number[];
  stops: readonly number[];
  /** True if a quota rolls: the key of its counter then differs by window. */
  rolls: boolean;
  /** True if a reservation has to be released. */
  holds: boolean;
}

/** `windows` are the set's windows that count the request. */
export function planOf(
  { requests, tokens, quotas: months }: LimitSet,
  windows: readonly Quota[],
  now: number,
  prefix: string,
): LimitPlan {
  const quotas = [...months, ...windows];
  const quotaKeys = quotas.map((quota) => quotaKey(prefix, quota, now));
  const limited = [...quotas.keys()].filter((i) => isLimited(quotas[i] as Quota));
  const limitedKeys = limited.map((i) => quotaKeys[i] as string);
  const tokenKeys = tokens.map(({ id }) => bucketKey(prefix, "tokens", id));
  return {
    time: timeOf(quotas, now),
    keys: [...requests.map(({ id }) => bucketKey(prefix, "requests", id)), ...tokenKeys, ...limitedKeys],
    figures: [
      ...[requests.length, tokens.length, limited.length].map(String),
      ...[...requests, ...tokens].flatMap(figuresOf),
      ...limited.flatMap((i) => amountsOf(quotas[i] as Quota)),
    ],
    lease: [String(tokens.length), ...tokens.flatMap((rule, i) => [tokenKeys[i] as string, ...figuresOf(rule)])],
    quotas,
    quotaKeys,
    limited,
    stops: limited.filter((i) => quotas[i]?.stops !== undefined),
    rolls: windows.some(isRolling),
    holds: tokens.length > 0 || limited.length > 0,
  };
}

/**
 * Arguments of quotas for later messages, if `keys` count: their number, and for each whether it has a reservation.
 * `stops`: reservations of quotas that end answers belong to their own lease.
 */
export function quotaArguments({ quotas }: LimitPlan, keys: readonly string[], stops: boolean): string[] {
  const isHeld = (quota: Quota) => isLimited(quota) && !(stops && quota.stops !== undefined);
  return [String(keys.length), ...keys.flatMap((key, i) => [key, isHeld(quotas[i] as Quota) ? "1" : "0"])];
}

/** Returns the span in which no calendar window ends. */
function timeOf(quotas: readonly Quota[], now: number): Period {
  const periods = quotas.map((quota) => periodOf(quota, now)).filter((period) => period !== undefined);
  return {
    start: Math.max(calendarMonthOf(now).start, ...periods.map(({ start }) => start)),
    end: Math.min(calendarMonthOf(now).end, ...periods.map(({ end }) => end)),
  };
}

/** Returns the calendar window of a quota. Undefined for a rolling one. */
export function periodOf({ window }: Quota, now: number): Period | undefined {
  if (window === undefined) return calendarMonthOf(now);
  return window.kind === "calendar" ? calendarPeriod(window, now) : undefined;
}

export function isRolling({ window }: Quota): boolean {
  return window?.kind === "rolling";
}

export function bucketKey(prefix: string, kind: "requests" | "tokens", id: string): string {
  return `${prefix}${kind}:${id}`;
}

/** Returns the prefix of all quotas' keys. */
export function quotaKeys(prefix: string): string {
  return `${prefix}quota:`;
}

/** Returns the key of its counter or, for a rolling quota, of the pointer to it. */
export function quotaKey(prefix: string, quota: Quota, now: number): string {
  const { id, window } = quota;
  if (isRolling(quota)) return `${quotaKeys(prefix)}rolling:${id}`;
  const { start } = periodOf(quota, now) as Period;
  const time = new Date(start * 1000).toISOString();
  return `${quotaKeys(prefix)}${window === undefined ? time.slice(0, 7) : time.slice(0, 13)}:${id}`;
}

/** Returns the key of a rolling window's counter by its name; the scripts use the same. */
export function rollingCounterKey(prefix: string, { id }: Quota, name: number): string {
  return `${quotaKeys(prefix)}window:${id}:${name}`;
}

export function figuresOf({ limit, windowSeconds }: RateLimit): [limit: string, windowMs: string] {
  return [String(limit), String(windowSeconds * 1000)];
}

/**
 * Returns the amounts as texts, unlimited ones as no number; the span of a rolling quota; and which amounts end an
 * answer.
 */
export function amountsOf(quota: Quota): string[] {
  const { tokens, nanoUsd, requests, window } = quota;
  const span = isRolling(quota) ? (window?.seconds ?? 0) : 0;
  return [...[tokens, nanoUsd, requests ?? null].map((amount) => String(amount ?? "-")), String(span), flagsOf(quota)];
}

/** Returns the flags of amounts that end an answer, as in the scripts. */
function flagsOf({ stops }: Quota): string {
  return String((stops?.tokens ? 1 : 0) + (stops?.nanoUsd ? 2 : 0));
}

/** Returns the arguments of a quota for the script that reserves more. */
export function stopArguments(quota: Quota, counter: string): string[] {
  const { tokens, nanoUsd } = quota;
  return [counter, String(tokens ?? "-"), String(nanoUsd ?? "-"), flagsOf(quota)];
}
