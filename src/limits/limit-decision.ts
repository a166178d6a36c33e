// Rules for all limits of a request: which limit refuses it, and which state the client sees.
import type { GatewayError } from "../base/errors.ts";
import {
  type LimitKind,
  neverFitsRefusal,
  type QuotaShortage,
  quotaRefusal,
  rateLimitRefusal,
} from "../domain/limits/limit-refusal.ts";
import type { LimitSet, LimitStatus, Quota, RateLimit, Reservation } from "../domain/limits/limits.ts";
import type { Period } from "../domain/limits/quota-rules.ts";
import type { Bucket } from "../domain/limits/rate-limit.ts";

/** Usage and reservations of one quota in one window, usually a month. */
export interface QuotaFigures {
  /** The window; undefined for a rolling window that has not begun. */
  readonly period: Period | undefined;
  /** Usage of ended requests; meaningless while `isRead` is false. */
  usedRequests: number;
  usedTokens: number;
  usedNanoUsd: number;
  /** Number of running requests with a reservation. */
  leases: number;
  heldTokens: number;
  heldNanoUsd: number;
  isRead: boolean;
}

/** Buckets of the request limits and token limits, in the order of the limits. */
export type Buckets = Readonly<Record<LimitKind, readonly Bucket[]>>;

export function isLimited({ tokens, nanoUsd, requests }: Quota): boolean {
  return tokens !== null || nanoUsd !== null || typeof requests === "number";
}

/** Reports whether the quota can stop the answer when it is used up. Such a quota has a separate reservation. */
export function isStopping({ stops }: Quota, { stop }: Pick<Reservation, "stop">): boolean {
  return stops !== undefined && stop !== undefined;
}

/** Returns the amounts that must remain in the quota to admit the request. */
export function neededOf(quota: Quota, need: Reservation): Pick<Reservation, "minTokens" | "minNanoUsd"> {
  return need.stop && isStopping(quota, need) ? need.stop : need;
}

/** Returns the first amount of the quota that the request would exceed; undefined if it fits. */
export function shortageOf(quota: Quota, figures: QuotaFigures, need: Reservation): QuotaShortage | undefined {
  const { usedRequests, usedTokens, usedNanoUsd, leases, heldTokens, heldNanoUsd } = figures;
  const { minTokens, minNanoUsd } = neededOf(quota, need);
  const { requests, tokens, nanoUsd } = quota;
  if (typeof requests === "number" && usedRequests + leases + 1 > requests) {
    return { unit: "requests", limit: requests, used: usedRequests, held: leases, needed: 1 };
  }
  if (tokens !== null && usedTokens + heldTokens + minTokens > tokens) {
    return { unit: "tokens", limit: tokens, used: usedTokens, held: heldTokens, needed: minTokens };
  }
  if (nanoUsd !== null && usedNanoUsd + heldNanoUsd + minNanoUsd > nanoUsd) {
    return { unit: "nanoUsd", limit: nanoUsd, used: usedNanoUsd, held: heldNanoUsd, needed: minNanoUsd };
  }
  return undefined;
}

/**
 * Returns the refusal of a quota; undefined if none refuses. If several refuse, it names the one that resets last.
 * Quotas that are not loaded are ignored.
 */
export function quotaShortage(
  quotas: readonly Quota[],
  counters: readonly (QuotaFigures | undefined)[],
  reservation: Reservation,
): GatewayError | undefined {
  let worst: { quota: Quota; period: Period | undefined; shortage: QuotaShortage } | undefined;
  let opens = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < quotas.length; i++) {
    const quota = quotas[i];
    const counter = counters[i];
    if (!quota || !counter?.isRead) continue;
    const shortage = shortageOf(quota, counter, reservation);
    const end = counter.period?.end ?? Number.POSITIVE_INFINITY;
    if (!shortage || end <= opens) continue;
    worst = { quota, period: counter.period, shortage };
    opens = end;
  }
  return worst && quotaRefusal(worst.quota, worst.period, worst.shortage);
}

/** Returns the refusal of the rate limit with the longest wait; undefined if none refuses. */
export function rateShortage(
  limits: LimitSet,
  buckets: Buckets,
  { minTokens }: Reservation,
  nowMs: number,
): GatewayError | undefined {
  let worst: { kind: LimitKind; rule: RateLimit; needed: number } | undefined;
  let maxMs = 0;
  for (const kind of ["requests", "tokens"] as const) {
    const needed = kind === "requests" ? 1 : minTokens;
    for (const [i, rule] of limits[kind].entries()) {
      const waitMs = buckets[kind][i]?.waitMs(needed, nowMs) ?? 0;
      if (waitMs <= maxMs) continue;
      worst = { kind, rule, needed };
      maxMs = waitMs;
    }
  }
  if (!worst) return undefined;
  const { kind, rule, needed } = worst;
  return Number.isFinite(maxMs) ? rateLimitRefusal(kind, rule, needed, maxMs) : neverFitsRefusal(kind, rule, needed);
}

export function statusOf({ requests, tokens }: Buckets, nowMs: number): LimitStatus {
  return { requests: tightest(requests, nowMs)?.state(nowMs), tokens: tightest(tokens, nowMs)?.state(nowMs) };
}

function tightest(buckets: readonly Bucket[], nowMs: number): Bucket | undefined {
  return buckets.reduceRight<Bucket | undefined>((other, bucket) => tighter(bucket, other, nowMs), undefined);
}

/** Returns the bucket with less capacity left; if equal, the one with the lower limit. */
export function tighter(one: Bucket, other: Bucket | undefined, nowMs: number): Bucket {
  if (other === undefined) return one;
  const room = one.room(nowMs);
  const otherRoom = other.room(nowMs);
  return otherRoom < room || (otherRoom === room && other.limit < one.limit) ? other : one;
}
