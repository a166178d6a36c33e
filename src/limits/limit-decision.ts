// The decision of several limits on a request together: which of them refuses it, and what is told of the tightest.
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

/** Figures of one quota in one window, which mostly is a month. Whole requests, tokens and nano-USD. */
export interface QuotaFigures {
  /** undefined: it begins with its first use. */
  readonly period: Period | undefined;
  /** Settled usage; without meaning until `isRead`. */
  usedRequests: number;
  usedTokens: number;
  usedNanoUsd: number;
  /** What running requests hold. */
  leases: number;
  heldTokens: number;
  heldNanoUsd: number;
  isRead: boolean;
}

/** Buckets in the order of the limits. */
export type Buckets = Readonly<Record<LimitKind, readonly Bucket[]>>;

export function isLimited({ tokens, nanoUsd, requests }: Quota): boolean {
  return tokens !== null || nanoUsd !== null || typeof requests === "number";
}

/** Whether a quota ends the answer of a request, and has another part set aside for it than the others. */
export function isStopping({ stops }: Quota, { stop }: Pick<Reservation, "stop">): boolean {
  return stops !== undefined && stop !== undefined;
}

/** What a quota must have left for the request. */
export function neededOf(quota: Quota, need: Reservation): Pick<Reservation, "minTokens" | "minNanoUsd"> {
  return need.stop && isStopping(quota, need) ? need.stop : need;
}

/** Which amount of a quota the request has no room in. */
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
 * The shortage of the quota that refuses the request; of several the one that opens last, as waiting for another is in
 * vain. One that is not read yet refuses nothing here.
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

/** The limit of both kinds that has no room and takes longest to regain it. */
export function rateShortage(
  limits: LimitSet,
  places: Buckets,
  { minTokens }: Reservation,
  nowMs: number,
): GatewayError | undefined {
  let worst: { kind: LimitKind; rule: RateLimit; needed: number } | undefined;
  let maxMs = 0;
  for (const kind of ["requests", "tokens"] as const) {
    const needed = kind === "requests" ? 1 : minTokens;
    for (const [i, rule] of limits[kind].entries()) {
      const waitMs = places[kind][i]?.waitMs(needed, nowMs) ?? 0;
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

/** The one with less room, or of two with the same the one with the lower limit. */
export function tighter(one: Bucket, other: Bucket | undefined, nowMs: number): Bucket {
  if (other === undefined) return one;
  const room = one.room(nowMs);
  const otherRoom = other.room(nowMs);
  return otherRoom < room || (otherRoom === room && other.limit < one.limit) ? other : one;
}
