// The decision of several limits on a request together: which of them refuses it, and what is told of the tightest.
import type { CalendarMonth } from "../base/calendar-month.ts";
import type { GatewayError } from "../base/errors.ts";
import { type LimitKind, neverFitsRefusal, quotaRefusal, rateLimitRefusal } from "../domain/limits/limit-refusal.ts";
import type { LimitSet, LimitStatus, Quota, RateLimit, Reservation } from "../domain/limits/limits.ts";
import type { Bucket } from "../domain/limits/rate-limit.ts";

/** Figures of one quota in one month. Whole tokens and nano-USD. */
export interface QuotaFigures {
  readonly month: CalendarMonth;
  /** Settled usage; without meaning until `isRead`. */
  usedTokens: number;
  usedNanoUsd: number;
  /** Set aside for running requests. */
  heldTokens: number;
  heldNanoUsd: number;
  isRead: boolean;
}

/** Buckets in the order of the limits. */
export type Buckets = Readonly<Record<LimitKind, readonly Bucket[]>>;

export function isLimited({ tokens, nanoUsd }: Quota): boolean {
  return tokens !== null || nanoUsd !== null;
}

function lacksTokens(quota: Quota, { usedTokens, heldTokens }: QuotaFigures, needed: number): boolean {
  return quota.tokens !== null && usedTokens + heldTokens + needed > quota.tokens;
}

function lacksMoney(quota: Quota, { usedNanoUsd, heldNanoUsd }: QuotaFigures, needed: number): boolean {
  return quota.nanoUsd !== null && usedNanoUsd + heldNanoUsd + needed > quota.nanoUsd;
}

/** The shortage of the quota that refuses the request. One that is not read yet refuses nothing here. */
export function quotaShortage(
  quotas: readonly Quota[],
  counters: readonly (QuotaFigures | undefined)[],
  { minTokens, minNanoUsd }: Reservation,
): GatewayError | undefined {
  for (let i = 0; i < quotas.length; i++) {
    const quota = quotas[i];
    const counter = counters[i];
    if (!quota || !counter?.isRead) continue;
    const { usedTokens, heldTokens, usedNanoUsd, heldNanoUsd } = counter;
    if (quota.tokens !== null && lacksTokens(quota, counter, minTokens)) {
      return quotaRefusal(quota, counter.month, {
        unit: "tokens",
        limit: quota.tokens,
        used: usedTokens,
        held: heldTokens,
        needed: minTokens,
      });
    }
    if (quota.nanoUsd !== null && lacksMoney(quota, counter, minNanoUsd)) {
      return quotaRefusal(quota, counter.month, {
        unit: "nanoUsd",
        limit: quota.nanoUsd,
        used: usedNanoUsd,
        held: heldNanoUsd,
        needed: minNanoUsd,
      });
    }
  }
  return undefined;
}

/** The limit of both kinds that has no room and takes longest to regain it. */
export function rateShortage(
  limits: LimitSet,
  places: Buckets,
  { minTokens }: Reservation,
  nowMs: number,
): GatewayError | undefined {
  let worst: { kind: LimitKind; rule: RateLimit; needed: number } | undefined;
  let longestMs = 0;
  for (const kind of ["requests", "tokens"] as const) {
    const needed = kind === "requests" ? 1 : minTokens;
    for (const [i, rule] of limits[kind].entries()) {
      const waitMs = places[kind][i]?.waitMs(needed, nowMs) ?? 0;
      if (waitMs <= longestMs) continue;
      worst = { kind, rule, needed };
      longestMs = waitMs;
    }
  }
  if (!worst) return undefined;
  const { kind, rule, needed } = worst;
  return Number.isFinite(longestMs)
    ? rateLimitRefusal(kind, rule, needed, longestMs)
    : neverFitsRefusal(kind, rule, needed);
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
