// Rate limits and quotas in this process's memory. Each request is decided synchronously, so all of its limits are
// checked atomically.

import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type {
  Admission,
  LimitSet,
  LimitStatus,
  LimitStore,
  Quota,
  QuotaUse,
  RateLimit,
  Reservation,
  WindowUse,
} from "../../domain/limits/limits.ts";
import { isCounted } from "../../domain/limits/quota-filter.ts";
import { Bucket } from "../../domain/limits/rate-limit.ts";
import type { Ledger } from "../../domain/usage/usage.ts";
import { CountedParty } from "../counted-party.ts";
import {
  isLimited,
  isStopping,
  quotaShortage,
  rateShortage,
  shortageOf,
  statusOf,
  tighter,
} from "../limit-decision.ts";
import { RequestBuckets, TokenBuckets } from "./memory-buckets.ts";
import { type LeaseSlots, MemoryLease } from "./memory-lease.ts";
import { MemoryQuotas } from "./memory-quotas.ts";
import { MemoryStop } from "./memory-stop.ts";
import { type CountedWindow, MemoryWindows, WindowCounter } from "./memory-windows.ts";
import type { MonthCounter } from "./quota-counters.ts";
import type { WindowStarts } from "./window-starts.ts";

export interface MemoryLimitsOptions {
  clock: Clock;
  ledger: Pick<Ledger, "readTotals">;
  /** Start times of rolling windows, kept over a restart. */
  starts?: WindowStarts;
}

/** Usage of earlier requests, from before this process started. */
export interface PastUsage extends Pick<LimitSet, "requests" | "tokens"> {
  /** Age in whole seconds, by the wall clock. */
  secondsAgo: number;
  /** Number of requests, and the sum of their tokens. */
  count: number;
  usedTokens: number;
}

export class MemoryLimits implements LimitStore {
  readonly #clock: Clock;
  readonly #quotas: MemoryQuotas;
  readonly #windows: MemoryWindows;
  /** Buckets of request limits and token limits are separate, because one limit id may have both. */
  readonly #requests = new RequestBuckets();
  readonly #tokens: TokenBuckets;
  /** The parts of this store that the leases of this month need. */
  #slots: LeaseSlots;

  constructor({ clock, ledger, starts }: MemoryLimitsOptions) {
    this.#clock = clock;
    this.#quotas = new MemoryQuotas(clock, ledger);
    this.#windows = new MemoryWindows(clock, ledger, starts);
    this.#tokens = new TokenBuckets(clock);
    this.#slots = { clock, counters: this.#quotas.now() };
  }

  /** Number of limits and quotas that have a state in memory. */
  get tracked(): number {
    return this.#requests.size + this.#tokens.size + this.#quotas.tracked + this.#windows.size;
  }

  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const nowMs = this.#clock.monotonicMs();
    const counters = this.#quotas.now();
    this.#requests.used(nowMs);
    this.#tokens.used(nowMs);
    counters.used(nowMs);
    const { minTokens, minNanoUsd } = reservation;
    const last = CountedParty.lastOf(limits, this);
    // The reserved amounts: what the request wants, but at most what its tightest limit has left.
    let { tokens, nanoUsd } = reservation;
    let isShort = false;
    let isUnread = false;
    // Write only changed values: a written object must be visited by the next garbage collection.
    for (let party = last; party; party = party.before) {
      const { quotaId, quotaTokens, quotaNanoUsd } = party;
      if (quotaId !== undefined) {
        const counter = this.#quotas.use(quotaId, counters, nowMs, party.counter);
        if (party.counter !== counter) party.counter = counter;
        if (party.isLimited) {
          const remainingTokens = quotaTokens - counter.usedTokens - counter.heldTokens;
          const remainingNanoUsd = quotaNanoUsd - counter.usedNanoUsd - counter.heldNanoUsd;
          if (!counter.isRead) isUnread = true;
          else if (minTokens > remainingTokens || minNanoUsd > remainingNanoUsd) isShort = true;
          if (quotaTokens !== Number.POSITIVE_INFINITY) tokens = Math.min(tokens, remainingTokens);
          if (quotaNanoUsd !== Number.POSITIVE_INFINITY) nanoUsd = Math.min(nanoUsd, remainingNanoUsd);
        }
      }
      if (party.requests) {
        const bucket = this.#requests.use(party.requests, nowMs, party.requestBucket);
        if (party.requestBucket !== bucket) party.requestBucket = bucket;
        if (!bucket.has(1, nowMs)) isShort = true;
      }
      if (party.tokens) {
        const bucket = this.#tokens.use(party.tokens, nowMs, party.tokenBucket);
        if (party.tokenBucket !== bucket) party.tokenBucket = bucket;
        if (!bucket.has(minTokens, nowMs)) isShort = true;
        tokens = Math.min(tokens, bucket.room(nowMs));
      }
    }
    let counted: readonly CountedWindow[] | undefined;
    if (limits.windows !== undefined) {
      counted = this.#windows.of(limits.windows, reservation, nowMs);
      for (const { quota, counter } of counted ?? []) {
        if (!counter.isRead) isUnread = true;
        else if (shortageOf(quota, counter, reservation)) isShort = true;
        if (isStopping(quota, reservation)) continue;
        tokens = Math.min(tokens, remainingOf(quota.tokens, counter.usedTokens + counter.heldTokens));
        nanoUsd = Math.min(nanoUsd, remainingOf(quota.nanoUsd, counter.usedNanoUsd + counter.heldNanoUsd));
      }
    }
    if (isShort) {
      const refusal = this.#refusalOf(limits, reservation, nowMs);
      if (refusal) return { refusal, status: this.#statusOf(last, nowMs) };
    }
    if (isUnread) return this.#admitOnceRead(limits, reservation);
    for (let party = last; party; party = party.before) if (party.requests) party.requestBucket?.take(1, nowMs);
    if (this.#slots.counters !== counters) this.#slots = { clock: this.#clock, counters };
    if (counted) for (const one of counted) this.#windows.begin(one, nowMs);
    const { stop } = reservation;
    const stopping = stop && counted?.filter(({ quota }) => quota.stops);
    const others = stopping ? counted?.filter(({ quota }) => !quota.stops) : counted;
    const ending = stop && stopping && stopping.length > 0 ? new MemoryStop(stopping, stop) : undefined;
    const lease = new MemoryLease(this.#slots, last, others, tokens, nanoUsd, ending);
    lease.begin(nowMs);
    lease.status = this.#statusOf(last, nowMs);
    return lease;
  }

  peek(limits: LimitSet): LimitStatus {
    const nowMs = this.#clock.monotonicMs();
    // A limit without a bucket is full. Reading its state must not create a bucket.
    const seen = (buckets: RequestBuckets | TokenBuckets) => (rule: RateLimit) =>
      buckets.has(rule.id) ? buckets.use(rule, nowMs) : new Bucket(rule);
    return statusOf(
      { requests: limits.requests.map(seen(this.#requests)), tokens: limits.tokens.map(seen(this.#tokens)) },
      nowMs,
    );
  }

  async used(quota: Quota): Promise<{ tokens: number; nanoUsd: number }> {
    const counter = this.#counter(quota);
    if (!counter.isRead) await this.#read(quota, counter);
    return { tokens: counter.usedTokens, nanoUsd: counter.usedNanoUsd };
  }

  async usedInWindow(quota: Quota): Promise<WindowUse> {
    const counter = this.#counter(quota);
    if (!counter.isRead) await this.#read(quota, counter);
    const { usedRequests: requests, usedTokens: tokens, usedNanoUsd: nanoUsd, period } = counter;
    return { requests, tokens, nanoUsd, period };
  }

  /** Raises the usage of a quota to at least these figures, until the ledger is read again. */
  applyMinimum(quota: Quota, { requests, tokens, nanoUsd }: QuotaUse): void {
    const counter = this.#counter(quota);
    counter.usedRequests = counter.isRead ? Math.max(counter.usedRequests, requests) : requests;
    counter.usedTokens = counter.isRead ? Math.max(counter.usedTokens, tokens) : tokens;
    counter.usedNanoUsd = counter.isRead ? Math.max(counter.usedNanoUsd, nanoUsd) : nanoUsd;
    counter.isRead = true;
  }

  /** Returns the known usage of a quota without reading the ledger; undefined if it was never read. */
  known(quota: Quota): QuotaUse | undefined {
    const { isRead, usedRequests: requests, usedTokens: tokens, usedNanoUsd: nanoUsd } = this.#counter(quota);
    return isRead ? { requests, tokens, nanoUsd } : undefined;
  }

  forgetQuotas(quotas: Iterable<Quota>): void {
    for (const quota of quotas) {
      if (quota.window) this.#windows.forget(quota);
      else this.#quotas.forget(quota.id);
    }
  }

  /** Returns the start of a quota's window in Unix seconds; undefined if no window is open. */
  startOf(quota: Quota): number | undefined {
    return this.#counter(quota).period?.start;
  }

  /** Reads a quota's usage from the ledger, even if it is known. Rejects with `service_unavailable`. */
  reread(quota: Quota): Promise<void> {
    return this.#read(quota, this.#counter(quota));
  }

  /**
   * Replays usage from before a restart into the buckets, oldest first. Call this before the first request. Each entry
   * is dated as late as its age in whole seconds allows, so at most two seconds of refill are lost and no limit is
   * exceeded.
   */
  replay(entries: readonly PastUsage[]): void {
    const nowMs = this.#clock.monotonicMs();
    for (const entry of entries.toSorted((a, b) => b.secondsAgo - a.secondsAgo)) {
      const atMs = nowMs - Math.max(0, entry.secondsAgo - 1) * 1000;
      this.#requests.used(atMs);
      // Requests never exceed their limit; an excess here is a rounding error of the ages.
      for (const rule of entry.requests) this.#requests.use(rule, atMs).takeUpTo(entry.count, atMs);
      for (const rule of entry.tokens) this.#tokens.use(rule, atMs).take(entry.usedTokens, atMs);
    }
  }

  async #admitOnceRead(limits: LimitSet, reservation: Reservation): Promise<Admission> {
    try {
      await Promise.all(
        quotasFor(limits, reservation).map((quota) => {
          const counter = this.#counter(quota);
          return isLimited(quota) && !counter.isRead ? this.#read(quota, counter) : undefined;
        }),
      );
    } catch (error) {
      if (error instanceof GatewayError) return { refusal: error, status: this.peek(limits) };
      throw error;
    }
    return this.admit(limits, reservation);
  }

  #read(quota: Quota, counter: WindowCounter | MonthCounter): Promise<void> {
    return counter instanceof WindowCounter ? this.#windows.read(quota, counter) : this.#quotas.read(quota, counter);
  }

  #counter(quota: Quota): WindowCounter | MonthCounter {
    if (quota.window) return this.#windows.use(quota, this.#clock.monotonicMs());
    return this.#quotas.use(quota.id, this.#quotas.now(), this.#clock.monotonicMs());
  }

  /** Checks quotas first, because waiting for a rate limit does not help if a quota is used up. */
  #refusalOf(limits: LimitSet, reservation: Reservation, nowMs: number): GatewayError | undefined {
    const quotas = quotasFor(limits, reservation);
    const counters = quotas.map((quota) => this.#counter(quota));
    const requests = limits.requests.map((rule) => this.#requests.use(rule, nowMs));
    const tokens = limits.tokens.map((rule) => this.#tokens.use(rule, nowMs));
    return (
      quotaShortage(quotas, counters, reservation) ?? rateShortage(limits, { requests, tokens }, reservation, nowMs)
    );
  }

  /** Returns the state of the tightest request limit and token limit. The buckets of all parties must be set. */
  #statusOf(last: CountedParty | undefined, nowMs: number): LimitStatus {
    let requests: Bucket | undefined;
    let tokens: Bucket | undefined;
    for (let party = last; party; party = party.before) {
      if (party.requestBucket) requests = tighter(party.requestBucket, requests, nowMs);
      if (party.tokenBucket) tokens = tighter(party.tokenBucket, tokens, nowMs);
    }
    return { requests: requests?.state(nowMs), tokens: tokens?.state(nowMs) };
  }
}

/** Returns the monthly quotas, and the quotas with a window that count the request. */
function quotasFor({ quotas, windows }: LimitSet, reservation: Reservation): readonly Quota[] {
  return windows === undefined ? quotas : [...quotas, ...windows.filter((quota) => isCounted(quota, reservation))];
}

function remainingOf(limit: number | null, taken: number): number {
  return limit === null ? Number.POSITIVE_INFINITY : limit - taken;
}
