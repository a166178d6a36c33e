// The bucket: exact admission at one instant and over time for any figures; refunds, debt and changed limits.
import { describe, expect, test } from "bun:test";
import { Bucket, type Hold } from "./rate-limit.ts";

/** Reproducible numbers from 0 to below 1 (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

function admitted(bucket: Bucket, tries: number, nowMs: number): number {
  let count = 0;
  for (let i = 0; i < tries && bucket.waitMs(1, nowMs) === 0; i++) {
    bucket.take(1, nowMs);
    count++;
  }
  return count;
}

const limits = [1, 2, 3, 7, 10, 60, 97, 100, 999, 1_000, 7_919, 65_537, 99_999, 100_000];
const windows = [1, 7, 13, 60, 97, 3_600, 86_399, 2_592_000];

describe("limits of requests", () => {
  test("admits exactly the limit at one instant, for any limit and window", () => {
    for (const limit of limits) {
      for (const windowSeconds of windows) {
        const bucket = new Bucket({ limit, windowSeconds });
        expect(admitted(bucket, limit + 3, 123.456)).toBe(limit);
        expect(bucket.state(123.456)).toEqual({ limit, remaining: 0, resetMs: windowSeconds * 1_000 + 124 - 123.456 });
      }
    }
  });

  test("admits the next request after the reported wait, and not a millisecond before", () => {
    for (const limit of limits) {
      for (const windowSeconds of windows) {
        const bucket = new Bucket({ limit, windowSeconds });
        admitted(bucket, limit, 1_000);
        const waitMs = bucket.waitMs(1, 1_000);
        expect(waitMs).toBe(Math.ceil((windowSeconds * 1_000) / limit));
        expect(bucket.waitMs(1, 1_000 + waitMs - 1)).toBe(1);
        expect(bucket.waitMs(1, 1_000 + waitMs)).toBe(0);
      }
    }
  });

  test("refills a limit fully in one window, and no further in a year", () => {
    for (const silenceMs of [60_000, 365 * 86_400_000]) {
      const bucket = new Bucket({ limit: 97, windowSeconds: 60 });
      admitted(bucket, 97, 0.5);
      expect(bucket.isIdle(1 + silenceMs)).toBe(true);
      expect(admitted(bucket, 200, 1 + silenceMs)).toBe(97);
    }
  });

  test("does not drift after a million admissions", () => {
    const bucket = new Bucket({ limit: 7, windowSeconds: 13 });
    let count = 0;
    let nowMs = 0;
    while (count < 1_000_000) {
      nowMs += bucket.waitMs(1, nowMs);
      bucket.take(1, nowMs);
      count++;
    }
    // The first 7 requests are admitted at once. Each later one is admitted at the first whole millisecond at which the
    // refill covers it.
    expect(nowMs).toBe(Math.ceil(((1_000_000 - 7) * 13_000) / 7));
  });

  test("admits no more than limit + rate x time in any interval, at fractional times too", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = randomFrom(seed);
      const limit = 1 + Math.floor(random() * 20);
      const windowSeconds = 1 + Math.floor(random() * 5);
      const bucket = new Bucket({ limit, windowSeconds });
      const times: number[] = [];
      let nowMs = random() * 1_000;
      for (let i = 0; i < 400; i++) {
        nowMs += random() < 0.5 ? 0 : random() * ((2_000 * windowSeconds) / limit);
        if (admitted(bucket, 1, nowMs) === 1) times.push(nowMs);
      }
      expect(times.length).toBeGreaterThan(limit);
      for (const [from, start] of times.entries()) {
        for (let to = from; to < times.length; to++) {
          const allowed = limit + (limit / (windowSeconds * 1_000)) * ((times[to] ?? 0) - start);
          if (to - from + 1 > allowed + 1e-9)
            expect({ seed, admitted: to - from + 1 }).toEqual({ seed, admitted: allowed });
        }
      }
    }
  });

  test("reports exactly the remaining requests", () => {
    const bucket = new Bucket({ limit: 3, windowSeconds: 60 });
    bucket.take(2, 0);
    expect([1, 2].map((count) => bucket.has(count, 0))).toEqual([true, false]);
  });

  test("neither refills nor blocks when the clock stops or goes back", () => {
    const bucket = new Bucket({ limit: 10, windowSeconds: 60 });
    admitted(bucket, 10, 100_000);
    expect(bucket.waitMs(1, 40_000)).toBe(66_000);
    expect(admitted(bucket, 1, 106_000)).toBe(1);
  });
});

interface Parcel {
  atMs: number;
  tokens: number;
}

/** Computes the backlog in token-milliseconds after every parcel was taken at its time, from the beginning. */
function backlogOf(parcels: readonly Parcel[], limit: number, nowMs: number): number {
  let backlog = 0;
  let lastMs = 0;
  for (const { atMs, tokens } of parcels) {
    backlog = Math.max(0, backlog - (atMs - lastMs) * limit) + tokens;
    lastMs = atMs;
  }
  return Math.max(0, backlog - (nowMs - lastMs) * limit);
}

describe("limits of tokens", () => {
  test("counts only the actual tokens after a reservation is released", () => {
    for (let seed = 1; seed <= 150; seed++) {
      const random = randomFrom(seed);
      const limit = 20 + Math.floor(random() * 2_000);
      const windowSeconds = 1 + Math.floor(random() * 3);
      const windowMs = windowSeconds * 1_000;
      const bucket = new Bucket({ limit, windowSeconds });
      const parcels: Parcel[] = [];
      const open: { hold: Hold; parcel: Parcel }[] = [];
      let nowMs = 0;
      for (let step = 0; step < 150; step++) {
        if (random() < 0.7) nowMs += Math.floor(random() * windowMs * 0.4);
        const tokens = 1 + Math.floor(random() * limit * 0.5);
        if (random() < 0.6 && bucket.waitMs(tokens, nowMs) === 0) {
          const parcel = { atMs: nowMs, tokens: tokens * windowMs };
          parcels.push(parcel);
          open.push({ hold: bucket.hold(tokens, nowMs), parcel });
        } else if (open.length > 0) {
          const [ended] = open.splice(Math.floor(random() * open.length), 1);
          if (!ended) continue;
          const held = ended.parcel.tokens / windowMs;
          const unused = Math.floor(random() * (held + 1));
          bucket.release(ended.hold, unused, nowMs);
          ended.parcel.tokens -= unused * windowMs;
        }
        const backlog = backlogOf(parcels, limit, nowMs);
        expect({ seed, step, resetMs: bucket.state(nowMs).resetMs }).toEqual({
          seed,
          step,
          resetMs: Math.ceil(backlog / limit),
        });
        expect(bucket.room(nowMs)).toBe(Math.max(0, Math.floor((limit * windowMs - backlog) / windowMs)));
      }
    }
  });

  test("allows no burst above the limit after long reservations end together", () => {
    const bucket = new Bucket({ limit: 1_000, windowSeconds: 60 });
    const holds = Array.from({ length: 10 }, (_, minute) => bucket.hold(1_000, minute * 60_000));
    const nowMs = 10 * 60_000;
    bucket.take(1_000, nowMs);
    for (const hold of holds) bucket.release(hold, 1_000, nowMs);
    expect(bucket.room(nowMs)).toBe(0);
  });

  test("returns everything for any order of releases at one instant", () => {
    const bucket = new Bucket({ limit: 1_000, windowSeconds: 60 });
    const holds = Array.from({ length: 10 }, () => bucket.hold(100, 5));
    expect(bucket.room(5)).toBe(0);
    for (const i of [3, 9, 0, 1, 8, 2, 7, 5, 4, 6]) {
      const hold = holds[i];
      if (hold) bucket.release(hold, 90, 5);
    }
    expect(bucket.room(5)).toBe(900);
    expect(bucket.isIdle(5)).toBe(false);
    expect(bucket.isIdle(5 + 6_000)).toBe(true);
  });

  test("turns uncovered tokens into debt that later requests wait out", () => {
    const bucket = new Bucket({ limit: 1_000, windowSeconds: 60 });
    bucket.take(3_000, 0);
    expect(bucket.state(0)).toEqual({ limit: 1_000, remaining: 0, resetMs: 180_000 });
    expect(bucket.waitMs(20, 0)).toBe(121_200);
    expect(bucket.room(121_200)).toBe(20);
  });

  test("never fits more than the whole bucket", () => {
    const bucket = new Bucket({ limit: 1_000, windowSeconds: 60 });
    expect(bucket.waitMs(1_000, 0)).toBe(0);
    expect(bucket.waitMs(1_001, 0)).toBe(Number.POSITIVE_INFINITY);
  });

  test("takes all that is left without going below empty", () => {
    const bucket = new Bucket({ limit: 10, windowSeconds: 60 });
    bucket.takeUpTo(4, 0);
    expect(bucket.room(0)).toBe(6);
    bucket.takeUpTo(50, 0);
    expect(bucket.waitMs(1, 0)).toBe(6_000);
  });

  test("counts a bucket with an open reservation as in use, even when it is full", () => {
    const bucket = new Bucket({ limit: 10, windowSeconds: 1 });
    const hold = bucket.hold(5, 0);
    expect(bucket.isIdle(60_000)).toBe(false);
    bucket.release(hold, 5, 60_000);
    expect(bucket.isIdle(60_000)).toBe(true);
  });
});

/** Counts the entries that a hold keeps in memory. */
function reachable(hold: Hold): number {
  const seen = new Set<Hold>([hold]);
  for (const place of seen) {
    for (const next of [place.older, place.newer, place.mergedInto]) if (next) seen.add(next);
  }
  return seen.size;
}

test("keeps no data of thousands of later reservations beside an open one", () => {
  for (const stepMs of [0, 1, 20]) {
    const bucket = new Bucket({ limit: 60_000, windowSeconds: 60 });
    const oldest = bucket.hold(1_000, 0);
    const long = bucket.hold(10, 0);
    const other = bucket.hold(10, 0);
    let last = bucket.hold(10, 10);
    bucket.release(other, 10, 10);
    for (let i = 1; i <= 5_000; i++) {
      const nowMs = 10 + i * stepMs;
      const next = bucket.hold(10, nowMs);
      bucket.release(last, i % 11, nowMs);
      last = next;
    }
    for (const hold of [oldest, long, last]) expect(reachable(hold)).toBeLessThan(10);
  }
});

describe("a changed limit", () => {
  test("keeps the time until a changed limit is full", () => {
    const bucket = new Bucket({ limit: 100, windowSeconds: 60 });
    admitted(bucket, 100, 0);
    bucket.adopt({ limit: 10, windowSeconds: 60 }, 0);
    expect(bucket.state(0)).toEqual({ limit: 10, remaining: 0, resetMs: 60_000 });
    expect(bucket.waitMs(1, 0)).toBe(6_000);
  });

  test("admits no extra requests by changing a limit to and fro", () => {
    const bucket = new Bucket({ limit: 20, windowSeconds: 60 });
    let count = 0;
    for (let i = 0; i < 100; i++) {
      bucket.adopt({ limit: i % 2 === 0 ? 20 : 7, windowSeconds: 60 }, 0);
      count += admitted(bucket, 3, 0);
    }
    expect(count).toBeLessThanOrEqual(20);
  });

  test("returns no more than is missing after a limit changed with open reservations", () => {
    const bucket = new Bucket({ limit: 1_000, windowSeconds: 60 });
    const holds = [bucket.hold(400, 0), bucket.hold(400, 10)];
    bucket.adopt({ limit: 10, windowSeconds: 60 }, 20);
    for (const hold of holds) bucket.release(hold, 400, 30);
    expect(bucket.state(30)).toEqual({ limit: 10, remaining: 10, resetMs: 0 });
  });

  test("fills a changed limit no earlier than before when its figures do not divide", () => {
    const bucket = new Bucket({ limit: 7, windowSeconds: 60 });
    bucket.take(1, 0);
    const { resetMs } = bucket.state(0);
    bucket.adopt({ limit: 2, windowSeconds: 60 }, 0);
    expect([bucket.state(0).resetMs, resetMs]).toEqual([8_572, 8_572]);
  });

  test("fills a changed limit exactly once all reservations are released", () => {
    const bucket = new Bucket({ limit: 7, windowSeconds: 60 });
    const holds = Array.from({ length: 7 }, () => bucket.hold(1, 0));
    bucket.adopt({ limit: 2, windowSeconds: 60 }, 0);
    for (const hold of holds) bucket.release(hold, 1, 0);
    expect(bucket.snapshot.backlog).toBeGreaterThanOrEqual(0);
  });
});
