// Rate limits and quotas in the memory of this process: one synchronous, hence atomic, decision over all of them.
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import { type LimitKind, neverFitsRefusal, quotaRefusal, rateLimitRefusal } from "../domain/limit-refusal.ts";
import type {
  Admission,
  Lease,
  LimitSet,
  LimitState,
  LimitStatus,
  LimitStore,
  Quota,
  RateLimit,
  Reservation,
} from "../domain/limits.ts";
import { Bucket, type Hold } from "../domain/rate-limit.ts";
import type { Ledger } from "../domain/usage.ts";
import { MemoryQuotas, type QuotaCounter } from "./memory-quotas.ts";
import { SweptMap } from "./swept-map.ts";

export interface MemoryLimitsOptions {
  clock: Clock;
  ledger: Pick<Ledger, "readTotals">;
}

/** What was admitted before this process began. */
export interface PastUsage extends Pick<LimitSet, "requests" | "tokens"> {
  /** Age by the wall clock, in whole seconds. */
  secondsAgo: number;
  /** How many requests, and the tokens that they used. */
  count: number;
  usedTokens: number;
}

export class MemoryLimits implements LimitStore {
  readonly #clock: Clock;
  readonly #quotas: MemoryQuotas;
  /** By limit id; one id may limit both kinds. */
  readonly #buckets: Readonly<Record<LimitKind, SweptMap<Bucket>>>;

  constructor({ clock, ledger }: MemoryLimitsOptions) {
    this.#clock = clock;
    this.#quotas = new MemoryQuotas(clock, ledger);
    const isIdle = (bucket: Bucket) => bucket.isIdle(clock.monotonicMs());
    this.#buckets = { requests: new SweptMap(isIdle), tokens: new SweptMap(isIdle) };
  }

  /** How many limits and quotas it keeps figures of. */
  get tracked(): number {
    return this.#buckets.requests.size + this.#buckets.tokens.size + this.#quotas.tracked;
  }

  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const nowMs = this.#clock.monotonicMs();
    this.#buckets.requests.used();
    this.#buckets.tokens.used();
    this.#quotas.sweep();
    const places: Places = {
      requests: limits.requests.map((rule) => this.#bucket("requests", rule, nowMs)),
      tokens: limits.tokens.map((rule) => this.#bucket("tokens", rule, nowMs)),
      counters: limits.quotas.map((quota) => this.#quotas.counter(quota, nowMs)),
    };
    // A quota first: where it is used up, waiting for a rate limit would be in vain.
    const refusal =
      quotaShortage(limits.quotas, places.counters, reservation) ?? rateShortage(limits, places, reservation, nowMs);
    if (refusal) return { refusal, status: statusOf(places, nowMs) };
    if (limits.quotas.some((quota, i) => isLimited(quota) && !places.counters[i]?.isRead)) {
      return this.#admitOnceRead(limits, reservation, places.counters);
    }
    for (const bucket of places.requests) bucket.take(1, nowMs);
    const amounts = amountsFor(limits.quotas, places, reservation, nowMs);
    const lease = new MemoryLease(this.#clock, places, amounts, nowMs);
    return { lease, reservedTokens: amounts.tokens, status: statusOf(places, nowMs) };
  }

  peek(limits: LimitSet): LimitStatus {
    const nowMs = this.#clock.monotonicMs();
    // One that is not tracked is whole, and is not tracked for being looked at.
    const seen = (kind: LimitKind) =>
      limits[kind].map((rule) =>
        this.#buckets[kind].get(rule.id) ? this.#bucket(kind, rule, nowMs) : new Bucket(rule),
      );
    return statusOf({ requests: seen("requests"), tokens: seen("tokens") }, nowMs);
  }

  async used(quota: Quota): Promise<{ tokens: number; nanoUsd: number }> {
    const counter = this.#quotas.counter(quota, this.#clock.monotonicMs());
    if (!counter.isRead) await this.#quotas.read(quota, counter);
    return { tokens: counter.usedTokens, nanoUsd: counter.usedNanoUsd };
  }

  /**
   * Takes up usage from before a restart, ahead of the first request. Each entry counts as young as its whole seconds
   * allow and is refilled since, oldest first: what was admitted before and after stays within limit + rate x time, and
   * at most two seconds of refill are lost. What a request took beyond its reservation counts from its beginning on.
   */
  replay(entries: readonly PastUsage[]): void {
    const nowMs = this.#clock.monotonicMs();
    for (const entry of entries.toSorted((a, b) => b.secondsAgo - a.secondsAgo)) {
      const atMs = nowMs - Math.max(0, entry.secondsAgo - 1) * 1000;
      // Requests never owe: what seems too much for the limit is the rounding of their age.
      for (const rule of entry.requests) this.#bucket("requests", rule, atMs).takeUpTo(entry.count, atMs);
      for (const rule of entry.tokens) this.#bucket("tokens", rule, atMs).take(entry.usedTokens, atMs);
    }
  }

  async #admitOnceRead(
    limits: LimitSet,
    reservation: Reservation,
    counters: readonly QuotaCounter[],
  ): Promise<Admission> {
    try {
      await Promise.all(
        limits.quotas.map((quota, i) => {
          const counter = counters[i];
          return counter && isLimited(quota) && !counter.isRead ? this.#quotas.read(quota, counter) : undefined;
        }),
      );
    } catch (error) {
      if (error instanceof GatewayError) return { refusal: error, status: this.peek(limits) };
      throw error;
    }
    return this.admit(limits, reservation);
  }

  #bucket(kind: LimitKind, rule: RateLimit, nowMs: number): Bucket {
    const known = this.#buckets[kind].get(rule.id);
    if (known) {
      known.adopt(rule, nowMs);
      return known;
    }
    const bucket = new Bucket(rule);
    this.#buckets[kind].set(rule.id, bucket);
    return bucket;
  }
}

/** Where a request counts. */
interface Places {
  requests: readonly Bucket[];
  tokens: readonly Bucket[];
  /** In the order of the quotas. */
  counters: readonly QuotaCounter[];
}

class MemoryLease implements Lease {
  readonly #clock: Clock;
  readonly #buckets: readonly Bucket[];
  readonly #holds: readonly Hold[];
  /** Of the month in which it began: usage belongs there even when it ends in the next. */
  readonly #counters: readonly QuotaCounter[];
  #tokens: number;
  #nanoUsd: number;
  #settled = false;

  constructor(
    clock: Clock,
    { tokens, counters }: Places,
    amounts: Pick<Reservation, "tokens" | "nanoUsd">,
    nowMs: number,
  ) {
    this.#clock = clock;
    this.#buckets = tokens;
    this.#counters = counters;
    this.#tokens = amounts.tokens;
    this.#nanoUsd = amounts.nanoUsd;
    this.#holds = tokens.map((bucket) => bucket.hold(amounts.tokens, nowMs));
    for (const counter of counters) {
      counter.leases++;
      counter.heldTokens += amounts.tokens;
      counter.heldNanoUsd += amounts.nanoUsd;
    }
  }

  extend(tokens: number, nanoUsd: number): void {
    if (this.#settled) return;
    const moreTokens = Math.max(0, tokens - this.#tokens);
    const moreNanoUsd = Math.max(0, nanoUsd - this.#nanoUsd);
    if (moreTokens > 0) {
      const nowMs = this.#clock.monotonicMs();
      for (const bucket of this.#buckets) bucket.take(moreTokens, nowMs);
    }
    for (const counter of this.#counters) {
      counter.heldTokens += moreTokens;
      counter.heldNanoUsd += moreNanoUsd;
    }
    this.#tokens += moreTokens;
    this.#nanoUsd += moreNanoUsd;
  }

  settle(tokens: number, nanoUsd: number): void {
    if (this.#settled) return;
    this.extend(tokens, nanoUsd);
    this.#settled = true;
    const nowMs = this.#clock.monotonicMs();
    for (const [i, bucket] of this.#buckets.entries()) {
      const hold = this.#holds[i];
      if (hold) bucket.release(hold, this.#tokens - tokens, nowMs);
    }
    for (const counter of this.#counters) {
      counter.leases--;
      counter.heldTokens -= this.#tokens;
      counter.heldNanoUsd -= this.#nanoUsd;
      // Where it is not read yet, the ledger's figures will stand in its place, this request included.
      counter.usedTokens += tokens;
      counter.usedNanoUsd += nanoUsd;
    }
  }
}

function isLimited({ tokens, nanoUsd }: Quota): boolean {
  return tokens !== null || nanoUsd !== null;
}

/** What is not read yet refuses nothing here. */
function quotaShortage(
  quotas: readonly Quota[],
  counters: readonly QuotaCounter[],
  { minTokens, minNanoUsd }: Reservation,
): GatewayError | undefined {
  for (const [i, quota] of quotas.entries()) {
    const counter = counters[i];
    if (!counter?.isRead) continue;
    const { usedTokens, heldTokens, usedNanoUsd, heldNanoUsd } = counter;
    if (quota.tokens !== null && usedTokens + heldTokens + minTokens > quota.tokens) {
      return quotaRefusal(quota, counter.month, {
        unit: "tokens",
        limit: quota.tokens,
        used: usedTokens,
        held: heldTokens,
        needed: minTokens,
      });
    }
    if (quota.nanoUsd !== null && usedNanoUsd + heldNanoUsd + minNanoUsd > quota.nanoUsd) {
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

/** Of the limits of both kinds that have no room, the one that takes longest to regain it. */
function rateShortage(
  limits: LimitSet,
  places: Pick<Places, LimitKind>,
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

/** What is asked for, or as much of it as every limit has left; that this is enough was checked before. */
function amountsFor(
  quotas: readonly Quota[],
  { tokens: buckets, counters }: Places,
  asked: Reservation,
  nowMs: number,
): Pick<Reservation, "tokens" | "nanoUsd"> {
  let { tokens, nanoUsd } = asked;
  for (const bucket of buckets) tokens = Math.min(tokens, bucket.room(nowMs));
  for (const [i, quota] of quotas.entries()) {
    const counter = counters[i];
    if (!counter) continue;
    if (quota.tokens !== null) tokens = Math.min(tokens, quota.tokens - counter.usedTokens - counter.heldTokens);
    if (quota.nanoUsd !== null) nanoUsd = Math.min(nanoUsd, quota.nanoUsd - counter.usedNanoUsd - counter.heldNanoUsd);
  }
  return { tokens, nanoUsd };
}

function statusOf({ requests, tokens }: Pick<Places, "requests" | "tokens">, nowMs: number): LimitStatus {
  return { requests: tightest(requests, nowMs), tokens: tightest(tokens, nowMs) };
}

function tightest(buckets: readonly Bucket[], nowMs: number): LimitState | undefined {
  let tightest: LimitState | undefined;
  for (const bucket of buckets) {
    const state = bucket.state(nowMs);
    const isTighter =
      !tightest ||
      state.remaining < tightest.remaining ||
      (state.remaining === tightest.remaining && state.limit < tightest.limit);
    if (isTighter) tightest = state;
  }
  return tightest;
}
