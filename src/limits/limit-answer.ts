// The answer of the script that decides: a verdict, the time, and what each limit and quota stands at.
import type { CalendarMonth } from "../base/calendar-month.ts";
import type { GatewayError } from "../base/errors.ts";
import type { LimitSet, RateLimit, Reservation } from "../domain/limits/limits.ts";
import { Bucket } from "../domain/limits/rate-limit.ts";
import { type QuotaFigures, quotaShortage, rateShortage } from "./limit-decision.ts";
import type { LimitPlan } from "./limit-plan.ts";

/** The verdicts of the script; the numbers are its own. */
export const verdicts = { admitted: 0, refused: 1, unread: 2, stranger: 3 } as const;
export const headSize = 4;
export const quotaSize = 5;

export function serverMs(answer: readonly number[]): number {
  return (answer[1] ?? 0) / 1000;
}

export function bucketsIn({ requests, tokens }: LimitSet, answer: readonly number[]) {
  const bucketAt = (rule: RateLimit, i: number) =>
    Bucket.standing(rule, answer[headSize + 2 * i] ?? 0, answer[headSize + 2 * i + 1] ?? 0);
  return {
    requests: requests.map(bucketAt),
    tokens: tokens.map((rule, i) => bucketAt(rule, requests.length + i)),
  };
}

export function quotaAt(answer: readonly number[], at: number, month: CalendarMonth): QuotaFigures {
  const [usedTokens = 0, heldTokens = 0, usedNanoUsd = 0, heldNanoUsd = 0, readAt = 0] = answer.slice(at);
  return { month, usedTokens, heldTokens, usedNanoUsd, heldNanoUsd, isRead: readAt > 0 };
}

/** The script has found that one refuses; which one is told is decided as everywhere. */
export function refusalOf(
  plan: LimitPlan,
  limits: LimitSet,
  reservation: Reservation,
  answer: readonly number[],
): GatewayError {
  const { month, keys, limited } = plan;
  const from = headSize + 2 * (keys.length - limited.length);
  const quotas: (QuotaFigures | undefined)[] = [];
  for (const [i, place] of limited.entries()) quotas[place] = quotaAt(answer, from + quotaSize * i, month);
  const refusal =
    quotaShortage(limits.quotas, quotas, reservation) ??
    rateShortage(limits, bucketsIn(limits, answer), reservation, serverMs(answer));
  if (!refusal) throw new Error("The shared limits refused what no limit refuses.");
  return refusal;
}
