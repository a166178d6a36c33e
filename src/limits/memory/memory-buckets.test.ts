// Buckets of requests are exact however many keys take turns, and a key that is whole again leaves nothing behind.
import { expect, test } from "bun:test";
import type { RateLimit } from "../../domain/limits/limits.ts";
import { Bucket } from "../../domain/limits/rate-limit.ts";
import { RequestBuckets } from "./memory-buckets.ts";

const ids = Array.from({ length: 4_000 }, () => `key:key_${Bun.randomUUIDv7()}`);
const hourly = (id: string, limit = 3): RateLimit => ({ id, owner: "key", limit, windowSeconds: 3_600 });

function randomBelow(seed: number): (count: number) => number {
  let state = seed;
  return (count) => {
    state = (state * 48271) % 2147483647;
    return state % count;
  };
}

test("gives each of thousands of interleaved keys the same result as alone, with changing rules", () => {
  const below = randomBelow(11);
  const buckets = new RequestBuckets();
  const alone = new Map<string, Bucket>();
  const rules = new Map<string, RateLimit>();
  const known = new Map<string, ReturnType<RequestBuckets["use"]>>();
  let nowMs = 0;
  let refused = 0;
  for (let step = 0; step < 60_000; step++) {
    nowMs += below(3_000) / 10;
    // Some are in use all the time, most seldom.
    const id = ids[below(2) === 0 ? below(20) : below(ids.length)] as string;
    let rule = rules.get(id);
    if (!rule || below(50) === 0) {
      rule = { ...hourly(id, 1 + below(9)), windowSeconds: 1 + below(600) };
      rules.set(id, rule);
    }
    let expected = alone.get(id);
    if (!expected) {
      expected = new Bucket(rule);
      alone.set(id, expected);
    }
    expected.adopt(rule, nowMs);
    buckets.used(nowMs);
    const bucket = buckets.use(rule, nowMs, below(2) === 0 ? known.get(id) : undefined);
    known.set(id, bucket);
    expect(bucket.state(nowMs)).toEqual(expected.state(nowMs));
    if (!bucket.has(1, nowMs)) {
      refused++;
      continue;
    }
    bucket.take(1, nowMs);
    expected.take(1, nowMs);
  }
  expect(refused).toBeGreaterThan(5_000);
});

test("returns the same buckets throughout one use, up to its maximum", () => {
  const buckets = new RequestBuckets();
  const rules = ids.map((id) => hourly(id));
  const held = rules.map((rule) => buckets.use(rule, 0));
  for (const bucket of held) bucket.take(3, 0);
  expect(rules.map((rule) => buckets.use(rule, 0))).toEqual(held);
  buckets.used(0);
  expect(rules.filter((rule) => buckets.use(rule, 0).has(1, 0))).toEqual([]);
});

function useAll(buckets: RequestBuckets, rules: readonly RateLimit[], nowMs: number): void {
  for (const rule of rules) {
    buckets.used(nowMs);
    buckets.use(rule, nowMs).take(1, nowMs);
  }
}

test("finds a bucket that is not full, and forgets it once it is", () => {
  const buckets = new RequestBuckets();
  const rules = ids.map((id) => hourly(id));
  useAll(buckets, rules, 0);
  expect(buckets.size).toBe(ids.length);
  expect(ids.filter((id) => !buckets.has(id))).toEqual([]);
  expect(buckets.has(`key:key_${Bun.randomUUIDv7()}`)).toBe(false);
  for (let use = 0; use < 4_000; use++) buckets.used(3_600_000);
  expect(buckets.size).toBeLessThan(2_100);
});

test("frees a soon full bucket after some hundred others were used", () => {
  const buckets = new RequestBuckets();
  const rules = ids.map((id) => ({ ...hourly(id), limit: 1_000, windowSeconds: 1 }));
  for (let nowMs = 0; nowMs < rules.length; nowMs++) useAll(buckets, rules.slice(nowMs, nowMs + 1), nowMs);
  expect(buckets.size).toBeLessThan(1_100);
});
