// The algorithm of one rate limit, exact in whole numbers: GCRA for requests, and a token bucket with partial refunds
// for tokens.
import type { LimitState } from "./limits.ts";

/** Seconds of a rate limit's window, if the request names none. */
export const defaultWindowSeconds = 60;

export interface BucketRule {
  /**
   * A whole number of at least 1. The bucket is exact while `limit` times the window in milliseconds stays below 2^53.
   */
  limit: number;
  windowSeconds: number;
}

/** The state of a bucket: the amount missing until it is full, and the time up to which refills are included. */
export interface BucketState {
  readonly backlog: number;
  readonly refilledMs: number;
}

const full: BucketState = { backlog: 0, refilledMs: 0 };

/**
 * An amount that was taken and may be refunded in part. The holds of a bucket form a linked list, ordered by time. Only
 * the bucket uses the members.
 */
export interface Hold {
  /**
   * The lowest backlog since this entry, minus that of the next older entry (or zero). Positive, except for the
   * rounding of `adopt`.
   */
  rise: number;
  /** Number of unreleased holds of this entry and of the entries that were merged into it. */
  open: number;
  older: Hold | undefined;
  newer: Hold | undefined;
  mergedInto: Hold | undefined;
}

/**
 * A bucket of at most `limit` requests or tokens, refilled at `limit` per window. Its state is the backlog, the amount
 * missing until the bucket is full: GCRA's theoretical arrival time less now, times the limit. On that scale, one
 * request or token adds `windowMs`, and each millisecond refills `limit`. All are whole numbers, so rounding never
 * admits one more or one less. Time is monotonic milliseconds. A fraction of a millisecond never counts as refill.
 */
export class Bucket {
  #limit: number;
  #windowMs: number;
  /** The backlog in requests or tokens, times `windowMs`. Above `limit * windowMs` the bucket is in debt. */
  #backlog: number;
  /** The whole millisecond up to which refills are included. Meaningless if there is no backlog. */
  #refilledMs: number;
  #newest: Hold | undefined;
  /** Lowest backlog since the newest hold. Equals the sum of all `rise` values. */
  #newestLowest = 0;
  #openHolds = 0;

  /**
   * Creates a full bucket, or continues the state of a bucket that is stored elsewhere. Times are then on that store's
   * clock.
   */
  constructor(rule: BucketRule, { backlog, refilledMs }: BucketState = full) {
    this.#limit = rule.limit;
    this.#windowMs = rule.windowSeconds * 1000;
    this.#backlog = backlog;
    this.#refilledMs = refilledMs;
  }

  /** The state from which another bucket with the same rule can continue. Open holds are not included. */
  get snapshot(): BucketState & { readonly windowMs: number } {
    return { backlog: this.#backlog, refilledMs: this.#refilledMs, windowMs: this.#windowMs };
  }

  /**
   * Changes the limit. The time until the bucket is full stays the same, so changing the limit back and forth gains
   * nothing. A lower limit locks nobody out for longer than before.
   */
  adopt({ limit, windowSeconds }: BucketRule, nowMs: number): void {
    const windowMs = windowSeconds * 1000;
    if (limit === this.#limit && windowMs === this.#windowMs) return;
    this.#refill(nowMs);
    const scale = limit / this.#limit;
    this.#backlog = Math.ceil(this.#backlog * scale);
    this.#newestLowest = 0;
    for (let step = this.#newest; step; step = step.older) {
      step.rise = Math.floor(step.rise * scale);
      this.#newestLowest += step.rise;
    }
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Returns how many whole requests or tokens can be taken now; 0 if the bucket is in debt. */
  room(nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, Math.floor((this.#limit * this.#windowMs - this.#backlog) / this.#windowMs));
  }

  /** Reports whether `count` can be taken now. */
  has(count: number, nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#backlog <= (this.#limit - count) * this.#windowMs;
  }

  /** Returns the milliseconds until `count` can be taken; infinite if the limit is smaller. */
  waitMs(count: number, nowMs: number): number {
    if (count > this.#limit) return Number.POSITIVE_INFINITY;
    this.#refill(nowMs);
    return this.#refillMs(this.#backlog - (this.#limit - count) * this.#windowMs, nowMs);
  }

  state(nowMs: number): LimitState {
    return { limit: this.#limit, remaining: this.room(nowMs), resetMs: this.#refillMs(this.#backlog, nowMs) };
  }

  /** Reports whether the bucket is full and has no open holds. A new bucket would then be equal. */
  isIdle(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#backlog === 0 && this.#openHolds === 0;
  }

  /** Takes `count` even if less is available. What is missing becomes debt. */
  take(count: number, nowMs: number): void {
    this.#refill(nowMs);
    if (this.#backlog === 0) this.#refilledMs = Math.ceil(nowMs);
    this.#backlog += count * this.#windowMs;
  }

  /** Takes `count`, or all that is available if that is less. */
  takeUpTo(count: number, nowMs: number): void {
    this.take(count, nowMs);
    this.#backlog = Math.min(this.#backlog, this.#limit * this.#windowMs);
  }

  /** Takes `count` like `take`. Pass the returned hold to `release` once. */
  hold(count: number, nowMs: number): Hold {
    this.take(count, nowMs);
    const rise = this.#backlog - (this.#newest ? this.#newestLowest : 0);
    const step: Hold = { rise, open: 1, older: this.#newest, newer: undefined, mergedInto: undefined };
    if (this.#newest) this.#newest.newer = step;
    this.#newest = step;
    this.#newestLowest = this.#backlog;
    this.#openHolds++;
    return step;
  }

  /**
   * Refunds `unused` of a hold. Refunds less if the bucket would have been full meanwhile, because that refill would
   * have been lost. A full refund would allow a burst of several times the limit when many long requests end together.
   */
  release(hold: Hold, unused: number, nowMs: number): void {
    this.#refill(nowMs);
    const step = root(hold);
    const refund = lowestUpTo(step, unused * this.#windowMs);
    // The refund lowers the lowest backlog since this entry and since each newer entry.
    step.rise -= refund;
    this.#newestLowest -= refund;
    this.#backlog -= refund;
    step.open--;
    this.#openHolds--;
    const merged = this.#mergeOlder(step);
    if (merged.open === 0) this.#remove(merged);
  }

  #refill(nowMs: number): void {
    const tick = Math.floor(nowMs);
    if (this.#backlog === 0 || tick <= this.#refilledMs) return;
    this.#backlog = Math.max(0, this.#backlog - (tick - this.#refilledMs) * this.#limit);
    this.#refilledMs = tick;
    if (!this.#newest || this.#newestLowest <= this.#backlog) return;
    this.#newest.rise -= this.#newestLowest - this.#backlog;
    this.#newestLowest = this.#backlog;
    this.#mergeOlder(this.#newest);
  }

  /**
   * Merges an entry into older ones while its lowest backlog is not above theirs. Events since an entry also happened
   * since each older entry, so no entry may have a lower value than an older one.
   */
  #mergeOlder(from: Hold): Hold {
    let step = from;
    while (step.older && step.rise <= 0) {
      const { older, newer } = step;
      older.rise += step.rise;
      older.open += step.open;
      older.newer = newer;
      if (newer) newer.older = older;
      else this.#newest = older;
      step.mergedInto = older;
      // The merged entry is unlinked, so that an open hold of it does not keep later entries in memory.
      step.older = undefined;
      step.newer = undefined;
      step = older;
    }
    return step;
  }

  /** Removes an entry that no hold uses. */
  #remove({ rise, older, newer }: Hold): void {
    if (older) older.newer = newer;
    if (newer) {
      newer.older = older;
      newer.rise += rise;
    } else {
      this.#newest = older;
      this.#newestLowest -= rise;
    }
  }

  /** Returns the milliseconds until `amount` of backlog is refilled. */
  #refillMs(amount: number, nowMs: number): number {
    return amount <= 0 ? 0 : Math.max(0, this.#refilledMs + Math.ceil(amount / this.#limit) - nowMs);
  }
}

/** Returns the lowest backlog since an entry, but at most `most`. The search seldom takes more than two steps. */
function lowestUpTo(from: Hold, most: number): number {
  let sum = 0;
  for (let step: Hold | undefined = from; step && sum < most; step = step.older) sum += step.rise;
  return Math.min(sum, most);
}

function root(hold: Hold): Hold {
  let step = hold;
  while (step.mergedInto) {
    // Shortens the chain of merged entries, so that the next search is faster.
    if (step.mergedInto.mergedInto) step.mergedInto = step.mergedInto.mergedInto;
    step = step.mergedInto;
  }
  return step;
}
