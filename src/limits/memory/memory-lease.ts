// The reservations of one admitted request in token limits and quotas in memory.
import type { Clock } from "../../base/clock.ts";
import type { Granted, Lease, LimitStatus } from "../../domain/limits/limits.ts";
import type { Hold } from "../../domain/limits/rate-limit.ts";
import type { CountedParty } from "../counted-party.ts";
import type { TokenBucket } from "./memory-buckets.ts";
import type { MemoryStop } from "./memory-stop.ts";
import type { CountedWindow } from "./memory-windows.ts";
import type { QuotaCounter, QuotaCounters } from "./quota-counters.ts";

/** The owners of buckets and counters. They drop nothing that has an open lease. */
export interface LeaseSlots {
  readonly clock: Clock;
  /**
   * The counters of the month in which the lease begins. Its usage belongs to this month even if the lease ends in the
   * next.
   */
  readonly counters: QuotaCounters;
}

const unlimited: LimitStatus = { requests: undefined, tokens: undefined };

/** Admission and lease in one object, because each admitted request needs both. */
export class MemoryLease implements Lease, Granted {
  readonly reservedTokens: number;
  status: LimitStatus = unlimited;
  readonly #slots: LeaseSlots;
  /** The last party of the request. */
  readonly #parties: CountedParty | undefined;
  /** The windows that were open when the lease began; its usage belongs to them. */
  readonly #windows: readonly CountedWindow[] | undefined;
  readonly stop: MemoryStop | undefined;
  /**
   * Token reservations in the order of the parties that limit tokens, beginning with the last. Usually only the account
   * limits tokens.
   */
  #hold: Hold | undefined;
  #otherHolds: Hold[] | undefined;
  #tokens: number;
  #nanoUsd: number;
  #settled = false;

  constructor(
    slots: LeaseSlots,
    parties: CountedParty | undefined,
    windows: readonly CountedWindow[] | undefined,
    tokens: number,
    nanoUsd: number,
    stop: MemoryStop | undefined,
  ) {
    this.reservedTokens = tokens;
    this.stop = stop;
    this.#slots = slots;
    this.#parties = parties;
    this.#windows = windows;
    this.#tokens = tokens;
    this.#nanoUsd = nanoUsd;
  }

  get lease(): Lease {
    return this;
  }

  /** Reserves; call once. The parties must have their current buckets and counters. */
  begin(nowMs: number): void {
    for (let party = this.#parties; party; party = party.before) {
      if (party.tokens) {
        const hold = bucketOf(party).hold(this.#tokens, nowMs);
        if (!this.#hold) {
          this.#hold = hold;
        } else {
          this.#otherHolds ??= [];
          this.#otherHolds.push(hold);
        }
      }
      if (party.quotaId !== undefined) {
        this.#counterOf(party, party.quotaId).begin(this.#tokens, this.#nanoUsd);
      }
    }
    if (this.#windows) for (const { counter } of this.#windows) counter.begin(this.#tokens, this.#nanoUsd);
    this.stop?.begin();
  }

  extend(tokens: number, nanoUsd: number): void {
    if (!this.#settled) this.#extend(tokens, nanoUsd, this.#slots.clock.monotonicMs());
  }

  settle(tokens: number, nanoUsd: number): void {
    if (this.#settled) return;
    const nowMs = this.#slots.clock.monotonicMs();
    this.#extend(tokens, nanoUsd, nowMs);
    this.#settled = true;
    let nth = 0;
    for (let party = this.#parties; party; party = party.before) {
      if (party.tokens) {
        const hold = nth === 0 ? this.#hold : this.#otherHolds?.[nth - 1];
        if (hold) bucketOf(party).release(hold, this.#tokens - tokens, nowMs);
        nth++;
      }
      if (party.quotaId !== undefined) this.#book(this.#counterOf(party, party.quotaId), tokens, nanoUsd);
    }
    if (this.#windows) for (const { counter } of this.#windows) this.#book(counter, tokens, nanoUsd);
    this.stop?.settle(tokens, nanoUsd);
  }

  /** Records the usage and releases the reservation. */
  #book(counter: QuotaCounter, tokens: number, nanoUsd: number): void {
    counter.book(tokens, nanoUsd, this.#tokens, this.#nanoUsd);
  }

  #extend(tokens: number, nanoUsd: number, nowMs: number): void {
    const moreTokens = Math.max(0, tokens - this.#tokens);
    const moreNanoUsd = Math.max(0, nanoUsd - this.#nanoUsd);
    if (moreTokens === 0 && moreNanoUsd === 0) return;
    for (let party = this.#parties; party; party = party.before) {
      if (party.tokens && moreTokens > 0) bucketOf(party).take(moreTokens, nowMs);
      if (party.quotaId !== undefined) {
        this.#counterOf(party, party.quotaId).hold(moreTokens, moreNanoUsd);
      }
    }
    for (const { counter } of this.#windows ?? []) counter.hold(moreTokens, moreNanoUsd);
    this.#tokens += moreTokens;
    this.#nanoUsd += moreNanoUsd;
  }

  /** The party continues with the next month's counter. */
  #counterOf({ counter }: CountedParty, id: string): QuotaCounter {
    const { counters } = this.#slots;
    return counter?.among === counters ? counter : (counters.find(id) as QuotaCounter);
  }
}

function bucketOf({ tokenBucket }: CountedParty): TokenBucket {
  return tokenBucket as TokenBucket;
}
