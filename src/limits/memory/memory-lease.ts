// The reservations of one admitted request in token limits and quotas, in this process's memory.
import type { Clock } from "../../base/clock.ts";
import type { Granted, Lease, LimitStatus } from "../../domain/limits/limits.ts";
import type { Hold } from "../../domain/limits/rate-limit.ts";
import type { CountedParty } from "../counted-party.ts";
import type { TokenBucket } from "./memory-buckets.ts";
import type { MemoryStop } from "./memory-stop.ts";
import type { CountedWindow } from "./memory-windows.ts";
import type { QuotaCounter, QuotaCounters } from "./quota-counters.ts";

/** The part of the limit store that a lease needs. */
export interface LeaseSlots {
  readonly clock: Clock;
  /** The counters of the month in which the lease began. Its usage counts there even if it ends in the next month. */
  readonly counters: QuotaCounters;
}

const unlimited: LimitStatus = { requests: undefined, tokens: undefined };

/** The admission and the lease in one object, because each admitted request needs both. */
export class MemoryLease implements Lease, Granted {
  readonly reservedTokens: number;
  status: LimitStatus = unlimited;
  readonly #slots: LeaseSlots;
  /** The last account or key whose limits count the request; `before` links to the others. */
  readonly #parties: CountedParty | undefined;
  /** The quota windows in which the lease began. Its usage counts there. */
  readonly #windows: readonly CountedWindow[] | undefined;
  readonly stop: MemoryStop | undefined;
  /** Reservations in token limits, in the order of `#parties`. There is rarely more than one. */
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

  /** Makes the reservations; call once. The buckets and counters of all parties must be current. */
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

  /** Counts the usage and releases the reservation in one quota. */
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

  /** After a month has ended, the party has the next month's counter, so look up the old one. */
  #counterOf({ counter }: CountedParty, id: string): QuotaCounter {
    const { counters } = this.#slots;
    return counter?.among === counters ? counter : (counters.find(id) as QuotaCounter);
  }
}

function bucketOf({ tokenBucket }: CountedParty): TokenBucket {
  return tokenBucket as TokenBucket;
}
