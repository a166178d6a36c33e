// The bucket behind one rate limit: GCRA for requests and a token bucket with holds for tokens, exact in whole numbers.
import type { LimitState } from "./limits.ts";

export interface BucketRule {
  /** At least 1. Exact while `limit` times the window in milliseconds stays below 2^53. */
  limit: number;
  windowSeconds: number;
}

/** How much is missing in a bucket, and since when that is so. */
export interface BucketState {
  readonly backlog: number;
  readonly refilledMs: number;
}

const full: BucketState = { backlog: 0, refilledMs: 0 };

/**
 * Something taken that may be given back in part: a place in the bucket's history, which knows the lowest backlog since.
 * Only the bucket looks inside.
 */
export interface Hold {
  /** How much higher that is than at the next older place, or than nothing. Above 0, but for the rounding of `adopt`. */
  rise: number;
  /** How many unreleased holds share this place. */
  open: number;
  older: Hold | undefined;
  newer: Hold | undefined;
  mergedInto: Hold | undefined;
}

/**
 * Holds at most `limit`, refilled at `limit` per window. What is kept is the backlog, what is missing until it is full:
 * GCRA's theoretical arrival time less now, times the limit. In that unit one thing weighs `windowMs` and a millisecond
 * gives back `limit`, all whole numbers, so that no rounding ever adds up to one admission more or less.
 *
 * Time is monotonic milliseconds. A fraction of a millisecond never counts as refill.
 */
export class Bucket {
  #limit: number;
  #windowMs: number;
  /** The backlog in things times `windowMs`. Above `limit * windowMs` it is in debt. */
  #backlog: number;
  /** Whole millisecond up to which refill is counted; without meaning while there is no backlog. */
  #refilledMs: number;
  #newest: Hold | undefined;
  /** Lowest backlog since the newest place: the sum of all rises. */
  #newestLowest = 0;
  #openHolds = 0;

  /** A full one, or one that is kept elsewhere, as it stood there; by that place's time. */
  constructor(rule: BucketRule, { backlog, refilledMs }: BucketState = full) {
    this.#limit = rule.limit;
    this.#windowMs = rule.windowSeconds * 1000;
    this.#backlog = backlog;
    this.#refilledMs = refilledMs;
  }

  /** What another one goes on from under the same rule, where nothing may come back to this one. */
  get standing(): BucketState & { readonly windowMs: number } {
    return { backlog: this.#backlog, refilledMs: this.#refilledMs, windowMs: this.#windowMs };
  }

  /**
   * Goes on under other figures. The time until it is full stays as it is: changing to and fro between two rules gains
   * nothing, and a lower limit locks nobody out for longer than the former one did.
   */
  adopt({ limit, windowSeconds }: BucketRule, nowMs: number): void {
    const windowMs = windowSeconds * 1000;
    if (limit === this.#limit && windowMs === this.#windowMs) return;
    this.#refill(nowMs);
    const scale = limit / this.#limit;
    this.#backlog = Math.ceil(this.#backlog * scale);
    this.#newestLowest = 0;
    for (let place = this.#newest; place; place = place.older) {
      place.rise = Math.floor(place.rise * scale);
      this.#newestLowest += place.rise;
    }
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Whole things that it holds now; 0 in debt. */
  room(nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, Math.floor((this.#limit * this.#windowMs - this.#backlog) / this.#windowMs));
  }

  /** Whether it holds `count` now. */
  has(count: number, nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#backlog <= (this.#limit - count) * this.#windowMs;
  }

  /** Milliseconds until it holds `count`; infinite where it never does. */
  waitMs(count: number, nowMs: number): number {
    if (count > this.#limit) return Number.POSITIVE_INFINITY;
    this.#refill(nowMs);
    return this.#refillMs(this.#backlog - (this.#limit - count) * this.#windowMs, nowMs);
  }

  state(nowMs: number): LimitState {
    return { limit: this.#limit, remaining: this.room(nowMs), resetMs: this.#refillMs(this.#backlog, nowMs) };
  }

  /** Full, and nothing may come back to it: a new bucket would be the same. */
  isIdle(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#backlog === 0 && this.#openHolds === 0;
  }

  /** Unconditional: what it does not hold becomes debt. */
  take(count: number, nowMs: number): void {
    this.#refill(nowMs);
    if (this.#backlog === 0) this.#refilledMs = Math.ceil(nowMs);
    this.#backlog += count * this.#windowMs;
  }

  /** Takes `count`, or all that it holds. */
  takeUpTo(count: number, nowMs: number): void {
    this.take(count, nowMs);
    this.#backlog = Math.min(this.#backlog, this.#limit * this.#windowMs);
  }

  /** Takes like `take`; to be released once. */
  hold(count: number, nowMs: number): Hold {
    this.take(count, nowMs);
    const rise = this.#backlog - (this.#newest ? this.#newestLowest : 0);
    const place: Hold = { rise, open: 1, older: this.#newest, newer: undefined, mergedInto: undefined };
    if (this.#newest) this.#newest.newer = place;
    this.#newest = place;
    this.#newestLowest = this.#backlog;
    this.#openHolds++;
    return place;
  }

  /**
   * Gives back `unused` of a hold, as if it had not been taken in the first place: less comes back where the bucket
   * would have been full in the meantime and the refill lost. A refund of everything would let many long requests that
   * end together be followed by a burst of several times the limit.
   */
  release(hold: Hold, unused: number, nowMs: number): void {
    this.#refill(nowMs);
    const place = root(hold);
    const refund = lowestUpTo(place, unused * this.#windowMs);
    // Since this place and since each newer one, the backlog was that much lower.
    place.rise -= refund;
    this.#newestLowest -= refund;
    this.#backlog -= refund;
    place.open--;
    this.#openHolds--;
    const left = this.#mergeOlder(place);
    if (left.open === 0) this.#remove(left);
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
   * Merges older places: what happened since a place happened since each older one too, so none has seen a lower
   * backlog than those before.
   */
  #mergeOlder(from: Hold): Hold {
    let place = from;
    while (place.older && place.rise <= 0) {
      const { older, newer } = place;
      older.rise += place.rise;
      older.open += place.open;
      older.newer = newer;
      if (newer) newer.older = older;
      else this.#newest = older;
      place.mergedInto = older;
      // An open hold must not keep alive all that comes and goes after it.
      place.older = undefined;
      place.newer = undefined;
      place = older;
    }
    return place;
  }

  /** Removes a place whose history nobody asks for any more. */
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

  /** Milliseconds until `amount` of backlog is gone. */
  #refillMs(amount: number, nowMs: number): number {
    return amount <= 0 ? 0 : Math.max(0, this.#refilledMs + Math.ceil(amount / this.#limit) - nowMs);
  }
}

/** The lowest backlog since a place, or `most` where it is more: seldom more than a step or two away. */
function lowestUpTo(from: Hold, most: number): number {
  let sum = 0;
  for (let place: Hold | undefined = from; place && sum < most; place = place.older) sum += place.rise;
  return Math.min(sum, most);
}

function root(hold: Hold): Hold {
  let place = hold;
  while (place.mergedInto) {
    // Shortens the way for the next one.
    if (place.mergedInto.mergedInto) place.mergedInto = place.mergedInto.mergedInto;
    place = place.mergedInto;
  }
  return place;
}
