// Parses the answer of the Lua script that admits requests: a verdict, the time, and the state of each limit and quota.
import type { GatewayError } from "../base/errors.ts";
import type { LimitSet, Quota, RateLimit, Reservation } from "../domain/limits/limits.ts";
import type { Period } from "../domain/limits/quota-rules.ts";
import { Bucket } from "../domain/limits/rate-limit.ts";
import { type QuotaFigures, quotaShortage, rateShortage } from "./limit-decision.ts";
import { type LimitPlan, periodOf } from "./limit-plan.ts";

/**
 * The verdicts of the script, as the numbers that it returns. `unread`: a quota's usage must be loaded first.
 * `stranger`: the server does not have this replica's registration.
 */
export const verdicts = { admitted: 0, refused: 1, unread: 2, stranger: 3 } as const;
/**
 * Number of values at the beginning of the answer: the verdict, the time, the tokens and nano-USD reserved in ordinary
 * limits, and those reserved in quotas that can stop the answer.
 */
export const headSize = 6;
/** Number of values at the beginning of the answer when a reservation is enlarged. */
export const growHeadSize = 4;
export const quotaSize = 9;

export function serverMs(answer: readonly number[]): number {
  return (answer[1] ?? 0) / 1000;
}

export function bucketsIn({ requests, tokens }: LimitSet, answer: readonly number[]) {
  const bucketAt = (rule: RateLimit, i: number) =>
    new Bucket(rule, { backlog: answer[headSize + 2 * i] ?? 0, refilledMs: answer[headSize + 2 * i + 1] ?? 0 });
  return {
    requests: requests.map(bucketAt),
    tokens: tokens.map((rule, i) => bucketAt(rule, requests.length + i)),
  };
}

export interface AnsweredQuota extends QuotaFigures {
  /** True if the store has dropped the quota's usage, so that it must be loaded again. */
  readonly isForgotten: boolean;
  /** For a rolling window: its start in the server's seconds (0 if no window is open), and its name. */
  readonly start: number;
  readonly name: number;
}

export function quotaAt(answer: readonly number[], at: number, quota: Quota, time: WindowTime): AnsweredQuota {
  const [usedTokens = 0, heldTokens = 0, usedNanoUsd = 0, heldNanoUsd = 0, readAt = 0] = answer.slice(at);
  const [usedRequests = 0, leases = 0, start = 0, name = 0] = answer.slice(at + 5);
  const used = { usedRequests, usedTokens, usedNanoUsd };
  const held = { leases, heldTokens, heldNanoUsd };
  return {
    period: periodAt(quota, start, time),
    ...used,
    ...held,
    isRead: readAt > 0,
    isForgotten: readAt < 0,
    start,
    name,
  };
}

/** The current time in Unix seconds, and its difference to the server's clock, which is 0 except in tests. */
export interface WindowTime {
  now: number;
  aheadSeconds: number;
}

function periodAt(quota: Quota, start: number, { now, aheadSeconds }: WindowTime): Period | undefined {
  const period = periodOf(quota, now);
  if (period || start === 0) return period;
  const from = start + aheadSeconds;
  return { start: from, end: from + (quota.window?.seconds ?? 0) };
}

/** Returns the state of the plan's quotas that have a limit. */
export function quotasIn(plan: LimitPlan, answer: readonly number[], time: WindowTime): AnsweredQuota[] {
  const { keys, quotas, limited } = plan;
  const from = headSize + 2 * (keys.length - limited.length);
  return limited.map((index, i) => quotaAt(answer, from + quotaSize * i, quotas[index] as Quota, time));
}

/**
 * Returns the error for a refused request. The script reports only the refusal, so this function finds the limit to
 * name in the error.
 */
export function refusalOf(
  plan: LimitPlan,
  limits: LimitSet,
  reservation: Reservation,
  answer: readonly number[],
  time: WindowTime,
): GatewayError {
  const limited = plan.limited.map((index) => plan.quotas[index] as Quota);
  const refusal =
    quotaShortage(limited, quotasIn(plan, answer, time), reservation) ??
    rateShortage(limits, bucketsIn(limits, answer), reservation, serverMs(answer));
  if (!refusal) throw new Error("The shared limits refused what no limit refuses.");
  return refusal;
}
