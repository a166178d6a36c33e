// The buckets of one kind of rate limit, by limit id, in the memory of this process.
import type { Clock } from "../domain/clock.ts";
import type { RateLimit } from "../domain/limits.ts";
import { Bucket } from "../domain/rate-limit.ts";
import { SweptMap } from "./swept-map.ts";

/** Most buckets are full again long before they are used again; for so long they are kept all the same. */
const keptMs = 60_000;

export class MemoryBuckets {
  readonly #buckets: SweptMap<TrackedBucket>;

  constructor(clock: Clock) {
    this.#buckets = new SweptMap((bucket, isCrowded) => bucket.giveUp(clock.monotonicMs(), isCrowded));
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** As `SweptMap.used`. */
  used(nowMs: number): void {
    this.#buckets.used(nowMs);
  }

  /** Of this rule, as it is. */
  find(rule: RateLimit): TrackedBucket | undefined {
    const { counted } = rule;
    if (counted instanceof TrackedBucket && counted.among === this) return counted;
    const bucket = this.#buckets.get(rule.id);
    if (bucket) rule.counted = bucket;
    return bucket;
  }

  /** From now on under the figures of this rule. */
  use(rule: RateLimit, nowMs: number): TrackedBucket {
    let bucket = this.find(rule);
    if (!bucket) {
      bucket = new TrackedBucket(rule, this);
      this.#buckets.set(rule.id, bucket);
      rule.counted = bucket;
    }
    bucket.use(rule, nowMs);
    return bucket;
  }
}

export class TrackedBucket extends Bucket {
  #usedMs = Number.NEGATIVE_INFINITY;
  #among: MemoryBuckets | undefined;

  constructor(rule: RateLimit, among: MemoryBuckets) {
    super(rule);
    this.#among = among;
  }

  /** Undefined once it was given up: the next one to ask for it gets another. */
  get among(): MemoryBuckets | undefined {
    return this.#among;
  }

  use(rule: RateLimit, nowMs: number): void {
    this.adopt(rule, nowMs);
    this.#usedMs = nowMs;
  }

  giveUp(nowMs: number, isCrowded: boolean): boolean {
    const isOver = (isCrowded || nowMs - this.#usedMs > keptMs) && this.isIdle(nowMs);
    if (isOver) this.#among = undefined;
    return isOver;
  }
}
