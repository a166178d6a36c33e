// The bucket behind one rate limit: GCRA for requests, and a token bucket with holds for tokens, exact in whole
// numbers.
import type { LimitState } from "./limits.ts";

export interface BucketRule {
  /**
   * A whole number of at least 1. The bucket is exact while `limit` times the window in milliseconds stays below 2^53.
   */
  limit: number;
  windowSeconds: number;
}

/** The amount that is missing in a bucket, and the time up to which refill is counted in it. */
export interface BucketState {
  readonly backlog: number;
  readonly refilledMs: number;
}

const full: BucketState = { backlog: 0, refilledMs: 0 };

/**
 * An amount that may be returned in part: an entry in the bucket's history with the lowest backlog since. Only the
 * bucket uses its members.
 */
export interface Hold {
  /**
   * The difference of the lowest backlog to that of the next older entry, or to zero. Positive, except for the rounding
   * of `adopt`.
   */
  rise: number;
  /** Number of unreleased holds that share this entry. */
  open: number;
  older: Hold | undefined;
  newer: Hold | undefined;
  mergedInto: Hold | undefined;
}

/**
 * Holds at most `limit`, refilled at `limit` per window. The state is the backlog, the amount missing until the bucket
 * is full: GCRA's theoretical arrival time less now, times the limit. On that scale one request or token weighs
 * `windowMs` and a millisecond refills `limit`, all whole numbers, so rounding never admits one more or one less. Time
 * is monotonic milliseconds. A fraction of a millisecond never counts as refill.
 */
export class Bucket {
  #limit: number;
  #windowMs: number;
  /** The backlog in requests or tokens, times `windowMs`. Above `limit * windowMs` the bucket is in debt. */
  #backlog: number;
  /** The whole millisecond up to which refill is counted. Without meaning if there is no backlog. */
  #refilledMs: number;
  #newest: Hold | undefined;
  /** Lowest backlog since the newest entry: the sum of all rises. */
  #newestLowest = 0;
  #openHolds = 0;

  /** Starts full, or with the state of a bucket that is stored elsewhere, in that store's time. */
  constructor(rule: BucketRule, { backlog, refilledMs }: BucketState = full) {
    this.#limit = rule.limit;
    this.#windowMs = rule.windowSeconds * 1000;
    this.#backlog = backlog;
    this.#refilledMs = refilledMs;
  }

  /** The state from which another bucket with the same rule continues, if nothing may be released here. */
  get snapshot(): BucketState & { readonly windowMs: number } {
    return { backlog: this.#backlog, refilledMs: this.#refilledMs, windowMs: this.#windowMs };
  }

  /**
   * Changes the limit. The time until the bucket is full stays the same, so changing back and forth gains nothing, and
   * a lower limit locks nobody out for longer than the earlier one did.
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

  /** Returns the whole requests or tokens that the bucket has now; 0 if it is in debt. */
  room(nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, Math.floor((this.#limit * this.#windowMs - this.#backlog) / this.#windowMs));
  }

  /** Reports whether the bucket has `count` now. */
  has(count: number, nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#backlog <= (this.#limit - count) * this.#windowMs;
  }

  /** Returns the milliseconds until the bucket has `count`; infinite if it never does. */
  waitMs(count: number, nowMs: number): number {
    if (count > this.#limit) return Number.POSITIVE_INFINITY;
    this.#refill(nowMs);
    return this.#refillMs(this.#backlog - (this.#limit - count) * this.#windowMs, nowMs);
  }

  state(nowMs: number): LimitState {
    return { limit: this.#limit, remaining: this.room(nowMs), resetMs: this.#refillMs(this.#backlog, nowMs) };
  }

  /** Reports whether the bucket is full with nothing to be released, so that a new bucket would be the same. */
  isIdle(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#backlog === 0 && this.#openHolds === 0;
  }

  /** Takes `count` unconditionally. A shortage becomes debt. */
  take(count: number, nowMs: number): void {
    this.#refill(nowMs);
    if (this.#backlog === 0) this.#refilledMs = Math.ceil(nowMs);
    this.#backlog += count * this.#windowMs;
  }

  /** Takes `count`, or the whole content if that is less. */
  takeUpTo(count: number, nowMs: number): void {
    this.take(count, nowMs);
    this.#backlog = Math.min(this.#backlog, this.#limit * this.#windowMs);
  }

  /** Takes `count` like `take`, to be released once. */
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
   * Returns `unused` of a hold as if it had never been taken: less if the bucket would have been full meanwhile and
   * lost refill. A full refund would allow a burst of several times the limit after many long requests end together.
   */
  release(hold: Hold, unused: number, nowMs: number): void {
    this.#refill(nowMs);
    const step = root(hold);
    const refund = lowestUpTo(step, unused * this.#windowMs);
    // The lowest backlog since this entry, and since each newer one, is lower by the refund.
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
   * Merges older entries, because events since an entry also happened since each older one: none has a lower backlog
   * than those before.
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
      // Unlinks the entry, so that an open hold does not keep later entries in memory.
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

/** Returns the lowest backlog since an entry, at most `most`. The search seldom needs more than two steps. */
function lowestUpTo(from: Hold, most: number): number {
  let sum = 0;
  for (let step: Hold | undefined = from; step && sum < most; step = step.older) sum += step.rise;
  return Math.min(sum, most);
}

function root(hold: Hold): Hold {
  let step = hold;
  while (step.mergedInto) {
    // Shortens the path for the next search.
    if (step.mergedInto.mergedInto) step.mergedInto = step.mergedInto.mergedInto;
    step = step.mergedInto;
  }
  return step;
}
