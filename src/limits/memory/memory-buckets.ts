// Buckets by limit id in this process's memory, for each kind of rate limit.
import { type Chained, ChainedMap } from "../../base/chained-map.ts";
import type { Clock } from "../../base/clock.ts";
import { SweptMap } from "../../base/swept-map.ts";
import type { RateLimit } from "../../domain/limits/limits.ts";
import { Bucket, type BucketRule, type BucketState } from "../../domain/limits/rate-limit.ts";
import { KeptRow, KeptRows, type RowLocation } from "./kept-rows.ts";

/** Minimum milliseconds in memory. Most buckets are full again long before their next use. */
const keptMs = 60_000;
/** Maximum number of request buckets that stay as objects. */
const maxRecent = 1_024;

/**
 * Buckets of requests, to which no amount is returned. Very many keys have one; most are seldom used and soon full
 * again. So only recently used buckets are objects. The others are rows of numbers, or are dropped if full.
 */
export class RequestBuckets {
  readonly #recent = new ChainedMap<RequestBucket>();
  /** Recently used buckets in order of arrival, beginning at `#oldest`. */
  #queue: RequestBucket[] = [];
  #oldest = 0;
  readonly #resting = new RestingBuckets();

  get size(): number {
    return this.#recent.size + this.#resting.size;
  }

  /**
   * Call once for each use that adds at most a handful of buckets, while the caller refers to no bucket. `nowMs` is
   * in monotonic milliseconds.
   */
  used(nowMs: number): void {
    this.#resting.used(nowMs);
    while (this.#recent.size > maxRecent) this.#rest(nowMs);
  }

  has(id: string): boolean {
    return this.#recent.get(id) !== undefined || this.#resting.find(id) !== undefined;
  }

  /**
   * Returns the bucket, with the figures of this rule from now on. `known` is the caller's previous bucket, which may
   * be obsolete.
   */
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

  /** Moves the oldest recent bucket to a row. */
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
  /** The id of the bucket's limit. */
  readonly name: string;
  next: RequestBucket | undefined = undefined;
  #rule: RateLimit | undefined;

  constructor(name: string, rule: BucketRule, state?: BucketState) {
    super(rule, state);
    this.name = name;
  }

  /**
   * The rule whose figures the bucket has. Undefined after the bucket became a row; the next caller gets another
   * object.
   */
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

/** Positions of the numbers in a row, and their count. One more entry marks the current use of the row. */
const [limit, windowMs, backlog, refilledMs, width] = [0, 1, 2, 3, 5] as const;

class RestingBuckets extends KeptRows<RestingBucket> {
  constructor() {
    super(width);
  }

  protected override at(location: RowLocation): RestingBucket {
    return new RestingBucket(location);
  }

  /** A full bucket can be dropped, because an unused bucket is full too. */
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

/** Buckets of tokens, to which a request returns the tokens that it did not use. Mainly accounts have such limits. */
export class TokenBuckets {
  readonly #buckets: SweptMap<TokenBucket>;

  constructor(clock: Clock) {
    this.#buckets = new SweptMap((bucket, isCrowded) => bucket.giveUp(clock.monotonicMs(), isCrowded));
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Call like `SweptMap.used`. */
  used(nowMs: number): void {
    this.#buckets.used(nowMs);
  }

  has(id: string): boolean {
    return this.#buckets.get(id) !== undefined;
  }

  /** Like `RequestBuckets.use`. */
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

  /** The rule whose figures the bucket has. Undefined after the bucket was dropped; the next caller gets another. */
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
