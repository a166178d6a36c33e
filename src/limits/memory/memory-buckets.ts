// Rate limit buckets by limit id, in this process's memory.
import { type Chained, ChainedMap } from "../../base/chained-map.ts";
import type { Clock } from "../../base/clock.ts";
import { SweptMap } from "../../base/swept-map.ts";
import type { RateLimit } from "../../domain/limits/limits.ts";
import { Bucket, type BucketRule, type BucketState } from "../../domain/limits/rate-limit.ts";
import { KeptRow, KeptRows, type RowLocation } from "./kept-rows.ts";

/** Minimum milliseconds for which an unused bucket stays in memory. */
const keptMs = 60_000;
/** Maximum request buckets that are objects; older ones become rows of numbers. */
const maxRecent = 1_024;

/**
 * Buckets of request limits. Very many keys have one, and most are rarely used. Only recently used ones are objects;
 * the others are rows of numbers, or are dropped once they are full again.
 */
export class RequestBuckets {
  readonly #recent = new ChainedMap<RequestBucket>();
  /** Recently created bucket objects, oldest at index `#oldest`. */
  #queue: RequestBucket[] = [];
  #oldest = 0;
  readonly #resting = new RestingBuckets();

  get size(): number {
    return this.#recent.size + this.#resting.size;
  }

  /**
   * Frees memory. Call this once for each use that adds a few buckets, while no bucket is referenced. `nowMs` is
   * monotonic.
   */
  used(nowMs: number): void {
    this.#resting.used(nowMs);
    while (this.#recent.size > maxRecent) this.#rest(nowMs);
  }

  has(id: string): boolean {
    return this.#recent.get(id) !== undefined || this.#resting.find(id) !== undefined;
  }

  /** Returns the bucket of this rule. `known` is the bucket that the caller got last; it may be outdated. */
  use(rule: RateLimit, nowMs: number, known?: RequestBucket): RequestBucket {
    if (known?.rule === rule) return known;
    const bucket = this.#recent.get(rule.id) ?? this.#add(rule);
    bucket.useUnder(rule, nowMs);
    return bucket;
  }

  #add(rule: RateLimit): RequestBucket {
    const resting = this.#resting.size === 0 ? undefined : this.#resting.find(rule.id);
    const bucket = resting ? new RequestBucket(rule.id, resting.rule, resting) : new RequestBucket(rule.id, rule);
    if (resting) this.#resting.remove(resting);
    this.#recent.add(bucket);
    this.#queue.push(bucket);
    return bucket;
  }

  /** Turns the oldest bucket object into a row, or drops it if it is full. */
  #rest(nowMs: number): void {
    const bucket = this.#queue[this.#oldest++];
    if (this.#oldest > maxRecent) {
      this.#queue = this.#queue.slice(this.#oldest);
      this.#oldest = 0;
    }
    if (!bucket) return;
    this.#recent.delete(bucket);
    bucket.leave();
    if (!bucket.isIdle(nowMs)) this.#resting.add(bucket.name).take(bucket);
  }
}

export class RequestBucket extends Bucket implements Chained<RequestBucket> {
  /** Id of the limit. */
  readonly name: string;
  next: RequestBucket | undefined = undefined;
  #rule: RateLimit | undefined;

  constructor(name: string, rule: BucketRule, state?: BucketState) {
    super(rule, state);
    this.name = name;
  }

  /** The rule that the bucket was last used with; undefined after the object was replaced by a row. */
  get rule(): RateLimit | undefined {
    return this.#rule;
  }

  useUnder(rule: RateLimit, nowMs: number): void {
    this.adopt(rule, nowMs);
    this.#rule = rule;
  }

  leave(): void {
    this.#rule = undefined;
  }
}

/** The positions of the numbers in a row, and the width of a row including the entry that `KeptRow` needs. */
const [limit, windowMs, backlog, refilledMs, width] = [0, 1, 2, 3, 5] as const;

class RestingBuckets extends KeptRows<RestingBucket> {
  constructor() {
    super(width);
  }

  protected override at(location: RowLocation): RestingBucket {
    return new RestingBucket(location);
  }

  /** A full bucket can be dropped, because a new bucket is full too. */
  protected override isOver(bucket: RestingBucket, nowMs: number): boolean {
    return new Bucket(bucket.rule, bucket).isIdle(nowMs);
  }
}

class RestingBucket extends KeptRow implements BucketState {
  get rule(): BucketRule {
    return { limit: this.get(limit), windowSeconds: this.get(windowMs) / 1000 };
  }

  get backlog(): number {
    return this.get(backlog);
  }

  get refilledMs(): number {
    return this.get(refilledMs);
  }

  take(bucket: Bucket): void {
    const { snapshot } = bucket;
    this.set(limit, bucket.limit);
    this.set(windowMs, snapshot.windowMs);
    this.set(backlog, snapshot.backlog);
    this.set(refilledMs, snapshot.refilledMs);
  }
}

/** Buckets of token limits. A request returns the tokens that it did not use. */
export class TokenBuckets {
  readonly #buckets: SweptMap<TokenBucket>;

  constructor(clock: Clock) {
    this.#buckets = new SweptMap((bucket, isCrowded) => bucket.giveUp(clock.monotonicMs(), isCrowded));
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Frees memory: visits some buckets and drops unused ones (`SweptMap.used`). */
  used(nowMs: number): void {
    this.#buckets.used(nowMs);
  }

  has(id: string): boolean {
    return this.#buckets.get(id) !== undefined;
  }

  /** Returns the bucket of this rule. `known` is the bucket that the caller got last; it may be outdated. */
  use(rule: RateLimit, nowMs: number, known?: TokenBucket): TokenBucket {
    if (known?.rule === rule) {
      known.usedMs = nowMs;
      return known;
    }
    let bucket = this.#buckets.get(rule.id);
    if (!bucket) {
      bucket = new TokenBucket(rule);
      this.#buckets.set(rule.id, bucket);
    }
    bucket.useUnder(rule, nowMs);
    return bucket;
  }
}

export class TokenBucket extends Bucket {
  usedMs = Number.NEGATIVE_INFINITY;
  #rule: RateLimit | undefined;

  /** The rule that the bucket was last used with; undefined after the bucket was dropped. */
  get rule(): RateLimit | undefined {
    return this.#rule;
  }

  useUnder(rule: RateLimit, nowMs: number): void {
    this.adopt(rule, nowMs);
    this.#rule = rule;
    this.usedMs = nowMs;
  }

  giveUp(nowMs: number, isCrowded: boolean): boolean {
    const isOver = (isCrowded || nowMs - this.usedMs > keptMs) && this.isIdle(nowMs);
    if (isOver) this.#rule = undefined;
    return isOver;
  }
}
