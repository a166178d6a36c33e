// The buckets of one kind of rate limit, by limit id, in the memory of this process.
import type { Clock } from "../../base/clock.ts";
import { SweptMap } from "../../base/swept-map.ts";
import type { RateLimit } from "../../domain/limits/limits.ts";
import { Bucket } from "../../domain/limits/rate-limit.ts";

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

  /** To be called like `SweptMap.used`. */
  used(nowMs: number): void {
    this.#buckets.used(nowMs);
  }

  find(rule: RateLimit): TrackedBucket | undefined {
    return this.#buckets.get(rule.id);
  }

  /**
   * The bucket under the figures of this rule from now on. `known`: the bucket that it had, if any, which need not be
   * one any more.
   */
  use(rule: RateLimit, nowMs: number, known?: TrackedBucket): TrackedBucket {
    if (known?.rule === rule) {
      known.usedMs = nowMs;
      return known;
    }
    let bucket = this.#buckets.get(rule.id);
    if (!bucket) {
      bucket = new TrackedBucket(rule);
      this.#buckets.set(rule.id, bucket);
    }
    bucket.useUnder(rule, nowMs);
    return bucket;
  }
}

export class TrackedBucket extends Bucket {
  usedMs = Number.NEGATIVE_INFINITY;
  #rule: RateLimit | undefined;

  /** The rule whose figures it has. Undefined once it was given up: the next one to ask for it gets another. */
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
