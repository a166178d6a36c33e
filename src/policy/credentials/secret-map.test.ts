// Tests that a map by secrets finds its entries after any changes, keeps to its size, and spares used entries.
import { expect, test } from "bun:test";
import { SecretMap } from "./secret-map.ts";

function randomBelow(seed: number): (count: number) => number {
  let state = seed;
  return (count) => {
    state = (state * 48271) % 2147483647;
    return state % count;
  };
}

test.each([1, 2, 3, 64, 65, 500])("returns the last value set and never exceeds its capacity of %d", (capacity) => {
  const below = randomBelow(capacity);
  const map = new SecretMap<number>(capacity);
  const last = new Map<string, number>();
  let found = 0;
  for (let step = 0; step < 20_000; step++) {
    const secret = `sk_${below(2 * capacity + 1)}`;
    if (below(3) === 0) {
      map.set(secret, step);
      last.set(secret, step);
      expect(map.get(secret)).toBe(step);
    } else if (below(5_000) === 0) {
      map.clear();
      last.clear();
    } else {
      const value = map.get(secret);
      if (value === undefined) continue;
      found++;
      expect<unknown[]>([step, value]).toEqual([step, last.get(secret)]);
    }
    expect(map.size).toBeLessThanOrEqual(capacity);
  }
  expect(found).toBeGreaterThan(2_000);
});

test("keeps every entry up to its capacity", () => {
  const map = new SecretMap<number>(5_000);
  for (let n = 0; n < 5_000; n++) map.set(`sk_${n}`, n);
  expect(map.size).toBe(5_000);
  for (let n = 0; n < 5_000; n++) expect(map.get(`sk_${n}`)).toBe(n);
});

test("removes the matching entries at once and finds all others, replaced or not", () => {
  const map = new SecretMap<number>(1_000);
  for (let n = 0; n < 1_000; n++) map.set(`sk_${n}`, n);
  map.forgetWhere((n) => n % 3 === 0);
  map.replaceEach((n) => -n);
  expect(map.size).toBe(666);
  for (let n = 0; n < 1_000; n++) expect(map.get(`sk_${n}`)).toBe(n % 3 === 0 ? undefined : -n);
  for (let n = 0; n < 2_000; n++) map.set(`sk_${n}`, n);
  expect(map.size).toBe(1_000);
  map.forgetWhere(() => true);
  expect([map.size, map.get("sk_1")]).toEqual([0, undefined]);
});

test("keeps entries that are used now and then, however many others come and go", () => {
  const map = new SecretMap<string>(100);
  for (const busy of ["sk_a", "sk_b", "sk_c"]) map.set(busy, busy);
  for (let n = 0; n < 10_000; n++) {
    map.set(`sk_${n}`, "once");
    // Each of these keys is read once in 51 steps.
    if (n % 17 === 0) expect(map.get(`sk_${"abc"[(n / 17) % 3]}`)).toBeDefined();
  }
  expect(map.size).toBe(100);
});

test("is empty after a clear and accepts new entries", () => {
  const map = new SecretMap<number>(1_000);
  for (let n = 0; n < 1_000; n++) map.set(`sk_${n}`, n);
  map.clear();
  expect(map.size).toBe(0);
  for (let n = 0; n < 1_000; n++) expect(map.get(`sk_${n}`)).toBeUndefined();
  map.set("sk_5", 6);
  expect([map.get("sk_5"), map.size]).toEqual([6, 1]);
});
