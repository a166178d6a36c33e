// The form in which a set of limits is put to the shared store: its keys and figures as texts, made once for each set.
import { calendarMonthOf } from "../base/calendar-month.ts";
import type { LimitSet, Quota, RateLimit } from "../domain/limits/limits.ts";
import { calendarPeriod, type Period } from "../domain/limits/quota-rules.ts";
import { isLimited } from "./limit-decision.ts";

export interface LimitPlan {
  /** Unix seconds: as long as it is one of these, the windows of the calendar are those of the keys. */
  time: Period;
  /** Buckets of requests, of tokens, then the quotas that limit something. */
  keys: readonly string[];
  /** The number of each, then their figures. */
  figures: readonly string[];
  /** The figures for what is told later: token buckets with theirs; without the quotas. */
  lease: readonly string[];
  /** All quotas, and their keys. */
  quotas: readonly Quota[];
  quotaKeys: readonly string[];
  /** Places among them of those that limit something, and of those that end an answer. */
  limited: readonly number[];
  stops: readonly number[];
  /** Whether one of them rolls: then the key of its counter is another for each window. */
  rolls: boolean;
  /** Whether something is set aside that has to be given back. */
  holds: boolean;
}

/** `windows`: those of the set that count the request. */
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
 * What is told later of quotas, where `keys` count: how many, and of each whether something of it is held. `stops`: what is
 * held of those that end the answer is that of a lease of their own.
 */
export function quotaArguments({ quotas }: LimitPlan, keys: readonly string[], stops: boolean): string[] {
  const isHeld = (quota: Quota) => isLimited(quota) && !(stops && quota.stops !== undefined);
  return [String(keys.length), ...keys.flatMap((key, i) => [key, isHeld(quotas[i] as Quota) ? "1" : "0"])];
}

/** The time in which none of the calendar's windows ends. */
function timeOf(quotas: readonly Quota[], now: number): Period {
  const periods = quotas.map((quota) => periodOf(quota, now)).filter((period) => period !== undefined);
  return {
    start: Math.max(calendarMonthOf(now).start, ...periods.map(({ start }) => start)),
    end: Math.min(calendarMonthOf(now).end, ...periods.map(({ end }) => end)),
  };
}

/** The calendar's window of a quota; undefined where it rolls. */
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

/** The beginning of all quotas' keys. */
export function quotaKeys(prefix: string): string {
  return `${prefix}quota:`;
}

/** The key of its counter, or, where it rolls, of what says which that is. */
export function quotaKey(prefix: string, quota: Quota, now: number): string {
  const { id, window } = quota;
  if (isRolling(quota)) return `${quotaKeys(prefix)}rolling:${id}`;
  const { start } = periodOf(quota, now) as Period;
  const time = new Date(start * 1000).toISOString();
  return `${quotaKeys(prefix)}${window === undefined ? time.slice(0, 7) : time.slice(0, 13)}:${id}`;
}

/** The key of the counter of a window that rolls, by what it is called; the scripts have the same. */
export function rollingCounterKey(prefix: string, { id }: Quota, name: number): string {
  return `${quotaKeys(prefix)}window:${id}:${name}`;
}

export function figuresOf({ limit, windowSeconds }: RateLimit): [limit: string, windowMs: string] {
  return [String(limit), String(windowSeconds * 1000)];
}

/** The amounts as texts, one that is not limited is no number to the script; the span of one that rolls; which end an answer. */
export function amountsOf(quota: Quota): string[] {
  const { tokens, nanoUsd, requests, window } = quota;
  const span = isRolling(quota) ? (window?.seconds ?? 0) : 0;
  return [...[tokens, nanoUsd, requests ?? null].map((amount) => String(amount ?? "-")), String(span), flagsOf(quota)];
}

/** Which of its amounts end an answer, as the scripts have it. */
function flagsOf({ stops }: Quota): string {
  return String((stops?.tokens ? 1 : 0) + (stops?.nanoUsd ? 2 : 0));
}

/** What a quota that ends an answer is to the script that sets aside more of it. */
export function stopArguments(quota: Quota, counter: string): string[] {
  const { tokens, nanoUsd } = quota;
  return [counter, String(tokens ?? "-"), String(nanoUsd ?? "-"), flagsOf(quota)];
}
