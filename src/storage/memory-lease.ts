// What one admitted request holds of the token limits and quotas in memory, and gives back at its end.
import type { Clock } from "../domain/clock.ts";
import type { Granted, Lease, LimitSet, LimitStatus, Quota, RateLimit } from "../domain/limits.ts";
import type { Hold } from "../domain/rate-limit.ts";
import type { MemoryBuckets, TrackedBucket } from "./memory-buckets.ts";
import { counterIn, type QuotaCounter, type QuotaCounters } from "./memory-quotas.ts";

/** Where leases count: no bucket and no counter is given up for as long as one is open there. */
export interface LeasePlaces {
  readonly clock: Clock;
  readonly tokens: MemoryBuckets;
  /** Of the month in which they begin: usage belongs there even where they end in the next. */
  readonly counters: QuotaCounters;
}

const unlimited: LimitStatus = { requests: undefined, tokens: undefined };

/** The admission and its lease are one object, as there is one for each request. */
export class MemoryLease implements Lease, Granted {
  readonly reservedTokens: number;
  status: LimitStatus = unlimited;
  readonly #places: LeasePlaces;
  readonly #limits: LimitSet;
  /** In the order of the limits of tokens. Mostly there is one, the account's. */
  #hold: Hold | undefined;
  #otherHolds: Hold[] | undefined;
  #tokens: number;
  #nanoUsd: number;
  #settled = false;

  constructor(places: LeasePlaces, limits: LimitSet, tokens: number, nanoUsd: number) {
    this.reservedTokens = tokens;
    this.#places = places;
    this.#limits = limits;
    this.#tokens = tokens;
    this.#nanoUsd = nanoUsd;
  }

  get lease(): Lease {
    return this;
  }

  /** Sets aside what it is for, once. */
  begin(nowMs: number): void {
    const { tokens: rules, quotas } = this.#limits;
    for (let i = 0; i < rules.length; i++) {
      const hold = this.#bucket(i).hold(this.#tokens, nowMs);
      if (i === 0) {
        this.#hold = hold;
      } else {
        this.#otherHolds ??= [];
        this.#otherHolds.push(hold);
      }
    }
    for (let i = 0; i < quotas.length; i++) {
      const counter = this.#counter(i);
      counter.leases++;
      counter.heldTokens += this.#tokens;
      counter.heldNanoUsd += this.#nanoUsd;
    }
  }

  extend(tokens: number, nanoUsd: number): void {
    if (!this.#settled) this.#extend(tokens, nanoUsd, this.#places.clock.monotonicMs());
  }

  settle(tokens: number, nanoUsd: number): void {
    if (this.#settled) return;
    const nowMs = this.#places.clock.monotonicMs();
    this.#extend(tokens, nanoUsd, nowMs);
    this.#settled = true;
    const { tokens: rules, quotas } = this.#limits;
    for (let i = 0; i < rules.length; i++) {
      const hold = i === 0 ? this.#hold : this.#otherHolds?.[i - 1];
      if (hold) this.#bucket(i).release(hold, this.#tokens - tokens, nowMs);
    }
    for (let i = 0; i < quotas.length; i++) {
      const counter = this.#counter(i);
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
    const { tokens: rules, quotas } = this.#limits;
    if (moreTokens > 0) for (let i = 0; i < rules.length; i++) this.#bucket(i).take(moreTokens, nowMs);
    for (let i = 0; i < quotas.length; i++) {
      const counter = this.#counter(i);
      counter.heldTokens += moreTokens;
      counter.heldNanoUsd += moreNanoUsd;
    }
    this.#tokens += moreTokens;
    this.#nanoUsd += moreNanoUsd;
  }

  #bucket(i: number): TrackedBucket {
    return this.#places.tokens.find(this.#limits.tokens[i] as RateLimit) as TrackedBucket;
  }

  #counter(i: number): QuotaCounter {
    return counterIn(this.#places.counters, this.#limits.quotas[i] as Quota) as QuotaCounter;
  }
}
