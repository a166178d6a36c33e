// The form in which a set of limits is put to the shared store: its keys and figures as texts, made once for each set.
import type { CalendarMonth } from "../base/calendar-month.ts";
import type { LimitSet, Quota, RateLimit } from "../domain/limits/limits.ts";
import { isLimited } from "./limit-decision.ts";

export interface LimitPlan {
  /** The month of the quotas. */
  month: CalendarMonth;
  /** Buckets of requests, of tokens, then the quotas that limit something. */
  keys: readonly string[];
  /** The number of each, then their figures. */
  figures: readonly string[];
  /** The figures for what is told later: token buckets with theirs, all quotas with whether they limit something. */
  lease: readonly string[];
  /** The keys of all quotas. */
  quotaKeys: readonly string[];
  /** Places in the set of the quotas that limit something. */
  limited: readonly number[];
  /** Whether something is set aside that has to be given back. */
  holds: boolean;
}

export function planOf(limits: LimitSet, month: CalendarMonth, prefix: string): LimitPlan {
  const { requests, tokens, quotas } = limits;
  const quotaKeys = quotas.map(({ id }) => quotaKey(prefix, month, id));
  const limited = [...quotas.keys()].filter((i) => isLimited(quotas[i] as Quota));
  const limitedKeys = limited.map((i) => quotaKeys[i] as string);
  const tokenKeys = tokens.map(({ id }) => bucketKey(prefix, "tokens", id));
  return {
    month,
    keys: [...requests.map(({ id }) => bucketKey(prefix, "requests", id)), ...tokenKeys, ...limitedKeys],
    figures: [
      ...[requests.length, tokens.length, limited.length].map(String),
      ...[...requests, ...tokens].flatMap(figuresOf),
      ...limited.flatMap((i) => amountsOf(quotas[i] as Quota)),
    ],
    lease: [
      String(tokens.length),
      ...tokens.flatMap((rule, i) => [tokenKeys[i] as string, ...figuresOf(rule)]),
      String(quotas.length),
      ...quotas.flatMap((quota, i) => [quotaKeys[i] as string, isLimited(quota) ? "1" : "0"]),
    ],
    quotaKeys,
    limited,
    holds: tokens.length > 0 || limited.length > 0,
  };
}

export function bucketKey(prefix: string, kind: "requests" | "tokens", id: string): string {
  return `${prefix}${kind}:${id}`;
}

/** The beginning of all quotas' keys. */
export function quotaKeys(prefix: string): string {
  return `${prefix}quota:`;
}

export function quotaKey(prefix: string, { start }: CalendarMonth, id: string): string {
  return `${quotaKeys(prefix)}${new Date(start * 1000).toISOString().slice(0, 7)}:${id}`;
}

export function figuresOf({ limit, windowSeconds }: RateLimit): [limit: string, windowMs: string] {
  return [String(limit), String(windowSeconds * 1000)];
}

/** The amounts as texts; one that is not limited is no number to the script. */
export function amountsOf({ tokens, nanoUsd }: Pick<Quota, "tokens" | "nanoUsd">): [string, string] {
  return [String(tokens ?? "-"), String(nanoUsd ?? "-")];
}
