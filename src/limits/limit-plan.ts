// Prepares a limit set for the Lua scripts: its Redis keys and arguments as texts, computed once for each set.
import { calendarMonthOf } from "../base/calendar-month.ts";
import type { LimitSet, Quota, RateLimit } from "../domain/limits/limits.ts";
import { calendarPeriod, type Period } from "../domain/limits/quota-rules.ts";
import { isLimited } from "./limit-decision.ts";

export interface LimitPlan {
  /** The period in Unix seconds in which this plan is valid: no calendar window begins or ends in it. */
  time: Period;
  /** Redis keys of request buckets, of token buckets, and of quotas with a limit, in this order. */
  keys: readonly string[];
  /** Script arguments: the number of limits of each kind, followed by their figures. */
  figures: readonly string[];
  /** Script arguments of later operations on the lease: token buckets with their figures, without quotas. */
  lease: readonly string[];
  /** All quotas of the set, and their Redis keys in the same order. */
  quotas: readonly Quota[];
  quotaKeys: readonly string[];
  /** Indexes of the quotas that have a limit. `stops` has the indexes of the quotas that can stop answers. */
  limited: readonly number[];
  stops: readonly number[];
  /** True if a quota has a rolling window. The Redis key of its counter is then known only after the script ran. */
  rolls: boolean;
  /** True if the script makes a reservation, which must be released later. */
  holds: boolean;
}

/** Prepares the plan of a limit set for requests that the quotas in `windows` count. */
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
 * Returns the script arguments of the quotas: the number of keys, and for each key whether the lease has a reservation
 * there. `stops`: another lease has the reservations in quotas that can stop answers.
 */
export function quotaArguments({ quotas }: LimitPlan, keys: readonly string[], stops: boolean): string[] {
  const isHeld = (quota: Quota) => isLimited(quota) && !(stops && quota.stops !== undefined);
  return [String(keys.length), ...keys.flatMap((key, i) => [key, isHeld(quotas[i] as Quota) ? "1" : "0"])];
}

/** Returns the period around `now` in which no calendar window begins or ends. */
function timeOf(quotas: readonly Quota[], now: number): Period {
  const periods = quotas.map((quota) => periodOf(quota, now)).filter((period) => period !== undefined);
  return {
    start: Math.max(calendarMonthOf(now).start, ...periods.map(({ start }) => start)),
    end: Math.min(calendarMonthOf(now).end, ...periods.map(({ end }) => end)),
  };
}

/** Returns the calendar window of a quota at this time; undefined for a rolling window. */
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

/** Returns the prefix of the Redis keys of all quotas. */
export function quotaKeys(prefix: string): string {
  return `${prefix}quota:`;
}

/**
 * Returns the Redis key of the quota's counter. For a rolling window, returns the key that holds the counter's name.
 */
export function quotaKey(prefix: string, quota: Quota, now: number): string {
  const { id, window } = quota;
  if (isRolling(quota)) return `${quotaKeys(prefix)}rolling:${id}`;
  const { start } = periodOf(quota, now) as Period;
  const time = new Date(start * 1000).toISOString();
  return `${quotaKeys(prefix)}${window === undefined ? time.slice(0, 7) : time.slice(0, 13)}:${id}`;
}

/** Returns the Redis key of a rolling window's counter. The Lua scripts build it in the same way. */
export function rollingCounterKey(prefix: string, { id }: Quota, name: number): string {
  return `${quotaKeys(prefix)}window:${id}:${name}`;
}

export function figuresOf({ limit, windowSeconds }: RateLimit): [limit: string, windowMs: string] {
  return [String(limit), String(windowSeconds * 1000)];
}

/**
 * Returns the quota as script arguments: its limits (`-` if unlimited), the length of a rolling window, and which
 * limits can stop an answer.
 */
export function amountsOf(quota: Quota): string[] {
  const { tokens, nanoUsd, requests, window } = quota;
  const span = isRolling(quota) ? (window?.seconds ?? 0) : 0;
  return [...[tokens, nanoUsd, requests ?? null].map((amount) => String(amount ?? "-")), String(span), flagsOf(quota)];
}

/** Returns bit flags of the limits that can stop an answer. */
function flagsOf({ stops }: Quota): string {
  return String((stops?.tokens ? 1 : 0) + (stops?.nanoUsd ? 2 : 0));
}

/** Returns the script arguments of a quota for enlarging a reservation. */
export function stopArguments(quota: Quota, counter: string): string[] {
  const { tokens, nanoUsd } = quota;
  return [counter, String(tokens ?? "-"), String(nanoUsd ?? "-"), flagsOf(quota)];
}
