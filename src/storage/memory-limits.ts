// Rate limits and quotas in the memory of this process: one synchronous, hence atomic, decision over all of them.

import type { CalendarMonth } from "../domain/calendar-month.ts";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { LimitKind } from "../domain/limit-refusal.ts";
import type {
  Admission,
  Lease,
  LimitSet,
  LimitStatus,
  LimitStore,
  Quota,
  RateLimit,
  Reservation,
} from "../domain/limits.ts";
import { Bucket, type Hold } from "../domain/rate-limit.ts";
import type { Ledger, UsageTotals } from "../domain/usage.ts";
import { isLimited, quotaShortage, rateShortage, statusOf } from "./limit-decision.ts";
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
  readonly #buckets: Readonly<Record<LimitKind, SweptMap<TrackedBucket>>>;
  /** Of sets of limits that were asked for before: a principal keeps its set for as long as nothing changes. */
  readonly #places = new WeakMap<LimitSet, Places>();

  constructor({ clock, ledger }: MemoryLimitsOptions) {
    this.#clock = clock;
    this.#quotas = new MemoryQuotas(clock, ledger);
    const giveUp = (bucket: TrackedBucket, isCrowded: boolean) => bucket.giveUp(clock.monotonicMs(), isCrowded);
    this.#buckets = { requests: new SweptMap(giveUp), tokens: new SweptMap(giveUp) };
  }

  /** How many limits and quotas it keeps figures of. */
  get tracked(): number {
    return this.#buckets.requests.size + this.#buckets.tokens.size + this.#quotas.tracked;
  }

  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const nowMs = this.#clock.monotonicMs();
    this.#buckets.requests.used(nowMs);
    this.#buckets.tokens.used(nowMs);
    this.#quotas.sweep(nowMs);
    const places = this.#placesOf(limits, nowMs);
    const { requests, tokens, counters } = places;
    // A quota first: where it is used up, waiting for a rate limit would be in vain.
    const refusal =
      quotaShortage(limits.quotas, counters, reservation) ??
      (allHave(requests, 1, nowMs) && allHave(tokens, reservation.minTokens, nowMs)
        ? undefined
        : rateShortage(limits, places, reservation, nowMs));
    if (refusal) return { refusal, status: statusOf(places, nowMs) };
    if (isUnread(limits.quotas, counters)) return this.#admitOnceRead(limits, reservation, counters);
    for (let i = 0; i < requests.length; i++) requests[i]?.take(1, nowMs);
    const lease = new MemoryLease(
      this.#clock,
      places,
      tokensFor(limits.quotas, places, reservation.tokens, nowMs),
      nanoUsdFor(limits.quotas, counters, reservation.nanoUsd),
      nowMs,
    );
    return { lease, reservedTokens: lease.reservedTokens, status: statusOf(places, nowMs) };
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

  /** A quota's owner used this much, as somebody else knew: it holds until it is read from the ledger again. */
  believe(quota: Quota, { tokens, nanoUsd }: UsageTotals): void {
    const counter = this.#quotas.counter(quota, this.#clock.monotonicMs());
    if (counter.isRead) return;
    counter.usedTokens = tokens;
    counter.usedNanoUsd = nanoUsd;
    counter.isRead = true;
  }

  /** Reads a quota's usage from the ledger, known or not. Rejects with `service_unavailable`. */
  reread(quota: Quota): Promise<void> {
    return this.#quotas.read(quota, this.#quotas.counter(quota, this.#clock.monotonicMs()));
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

  /** What it was last time, if all of that is still what counts. */
  #placesOf(limits: LimitSet, nowMs: number): Places {
    const known = this.#places.get(limits);
    if (
      known !== undefined &&
      known.month === this.#quotas.month() &&
      used(known.requests, limits.requests, nowMs) &&
      used(known.tokens, limits.tokens, nowMs) &&
      touched(known.counters, limits.quotas, nowMs)
    ) {
      return known;
    }
    const places: Places = {
      requests: limits.requests.map((rule) => this.#bucket("requests", rule, nowMs)),
      tokens: limits.tokens.map((rule) => this.#bucket("tokens", rule, nowMs)),
      counters: limits.quotas.map((quota) => this.#quotas.counter(quota, nowMs)),
      month: this.#quotas.month(),
    };
    this.#places.set(limits, places);
    return places;
  }

  #bucket(kind: LimitKind, rule: RateLimit, nowMs: number): TrackedBucket {
    const known = this.#buckets[kind].get(rule.id);
    if (known) {
      known.use(rule, nowMs);
      return known;
    }
    const bucket = new TrackedBucket(rule);
    bucket.use(rule, nowMs);
    this.#buckets[kind].set(rule.id, bucket);
    return bucket;
  }
}

/** Most buckets are full again long before they are used again; for so long they are kept all the same. */
const keptMs = 60_000;

class TrackedBucket extends Bucket {
  #isTracked = true;
  #usedMs = Number.NEGATIVE_INFINITY;

  /** Otherwise the next one to ask for it gets another. */
  get isTracked(): boolean {
    return this.#isTracked;
  }

  use(rule: RateLimit, nowMs: number): void {
    this.adopt(rule, nowMs);
    this.#usedMs = nowMs;
  }

  giveUp(nowMs: number, isCrowded: boolean): boolean {
    if (isCrowded || nowMs - this.#usedMs > keptMs) this.#isTracked = !this.isIdle(nowMs);
    return !this.#isTracked;
  }
}

/** Where a request counts. */
interface Places {
  requests: readonly TrackedBucket[];
  tokens: readonly TrackedBucket[];
  /** In the order of the quotas. */
  counters: readonly QuotaCounter[];
  /** Of the counters. */
  month: CalendarMonth;
}

/** Whether the buckets are still those of the rules; they go on under the rules' figures. */
function used(buckets: readonly TrackedBucket[], rules: readonly RateLimit[], nowMs: number): boolean {
  for (let i = 0; i < rules.length; i++) {
    const bucket = buckets[i];
    const rule = rules[i];
    if (!bucket?.isTracked || !rule) return false;
    bucket.use(rule, nowMs);
  }
  return true;
}

/** Whether the counters are still those of the quotas; they stay for another while. */
function touched(counters: readonly QuotaCounter[], quotas: readonly Quota[], nowMs: number): boolean {
  for (let i = 0; i < quotas.length; i++) {
    const counter = counters[i];
    if (!counter || counter.isForgotten) return false;
    counter.lastUsedMs = nowMs;
  }
  return true;
}

function allHave(buckets: readonly Bucket[], count: number, nowMs: number): boolean {
  for (let i = 0; i < buckets.length; i++) if (!buckets[i]?.has(count, nowMs)) return false;
  return true;
}

class MemoryLease implements Lease {
  readonly reservedTokens: number;
  readonly #clock: Clock;
  readonly #buckets: readonly Bucket[];
  readonly #holds: Hold[] = [];
  /** Of the month in which it began: usage belongs there even when it ends in the next. */
  readonly #counters: readonly QuotaCounter[];
  #tokens: number;
  #nanoUsd: number;
  #settled = false;

  constructor(
    clock: Clock,
    { tokens: buckets, counters }: Pick<Places, "tokens" | "counters">,
    tokens: number,
    nanoUsd: number,
    nowMs: number,
  ) {
    this.reservedTokens = tokens;
    this.#clock = clock;
    this.#buckets = buckets;
    this.#counters = counters;
    this.#tokens = tokens;
    this.#nanoUsd = nanoUsd;
    for (const bucket of buckets) this.#holds.push(bucket.hold(tokens, nowMs));
    for (const counter of counters) {
      counter.leases++;
      counter.heldTokens += tokens;
      counter.heldNanoUsd += nanoUsd;
    }
  }

  extend(tokens: number, nanoUsd: number): void {
    if (!this.#settled) this.#extend(tokens, nanoUsd, this.#clock.monotonicMs());
  }

  settle(tokens: number, nanoUsd: number): void {
    if (this.#settled) return;
    const nowMs = this.#clock.monotonicMs();
    this.#extend(tokens, nanoUsd, nowMs);
    this.#settled = true;
    for (let i = 0; i < this.#holds.length; i++) {
      this.#buckets[i]?.release(this.#holds[i] as Hold, this.#tokens - tokens, nowMs);
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

  #extend(tokens: number, nanoUsd: number, nowMs: number): void {
    const moreTokens = Math.max(0, tokens - this.#tokens);
    const moreNanoUsd = Math.max(0, nanoUsd - this.#nanoUsd);
    if (moreTokens === 0 && moreNanoUsd === 0) return;
    if (moreTokens > 0) for (const bucket of this.#buckets) bucket.take(moreTokens, nowMs);
    for (const counter of this.#counters) {
      counter.heldTokens += moreTokens;
      counter.heldNanoUsd += moreNanoUsd;
    }
    this.#tokens += moreTokens;
    this.#nanoUsd += moreNanoUsd;
  }
}

function isUnread(quotas: readonly Quota[], counters: readonly QuotaCounter[]): boolean {
  for (let i = 0; i < quotas.length; i++) {
    const quota = quotas[i];
    if (quota && isLimited(quota) && !counters[i]?.isRead) return true;
  }
  return false;
}

/** What is asked for, or as much of it as every limit has left; that this is enough was checked before. */
function tokensFor(
  quotas: readonly Quota[],
  { tokens: buckets, counters }: Places,
  asked: number,
  nowMs: number,
): number {
  let tokens = asked;
  for (let i = 0; i < buckets.length; i++) tokens = Math.min(tokens, buckets[i]?.room(nowMs) ?? tokens);
  for (let i = 0; i < quotas.length; i++) {
    const limit = quotas[i]?.tokens ?? null;
    const counter = counters[i];
    if (limit !== null && counter) tokens = Math.min(tokens, limit - counter.usedTokens - counter.heldTokens);
  }
  return tokens;
}

function nanoUsdFor(quotas: readonly Quota[], counters: readonly QuotaCounter[], asked: number): number {
  let nanoUsd = asked;
  for (let i = 0; i < quotas.length; i++) {
    const limit = quotas[i]?.nanoUsd ?? null;
    const counter = counters[i];
    if (limit !== null && counter) nanoUsd = Math.min(nanoUsd, limit - counter.usedNanoUsd - counter.heldNanoUsd);
  }
  return nanoUsd;
}
