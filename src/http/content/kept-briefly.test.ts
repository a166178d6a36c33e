// Tests which results are cached because they took long, and for how long.
import { expect, test } from "bun:test";
import { KeptBriefly } from "./kept-briefly.ts";

function maker() {
  const clock = { now: 0, monotonicMs: () => clock.now };
  const made = { count: 0, tookMs: 0 };
  const make = async () => {
    clock.now += made.tookMs;
    return ++made.count;
  };
  return { clock, made, make, kept: new KeptBriefly<number>(clock, 2) };
}

test("caches a slow result for ten times its duration, shared by concurrent callers", async () => {
  const { clock, made, make, kept } = maker();
  made.tookMs = 500;
  expect(await Promise.all([kept.get("a", make), kept.get("a", make)])).toEqual([1, 1]);
  clock.now += 4_999;
  expect(await kept.get("a", make)).toBe(1);
  clock.now += 1;
  expect(await kept.get("a", make)).toBe(2);
});

test("caches a quick result for one second, any result for ten at most, and few results at once", async () => {
  const { clock, made, make, kept } = maker();
  expect(await kept.get("a", make)).toBe(1);
  clock.now += 1_000;
  made.tookMs = 100_000;
  expect(await kept.get("a", make)).toBe(2);
  clock.now += 10_000;
  made.tookMs = 0;
  expect(await kept.get("a", make)).toBe(3);
  await kept.get("b", make);
  await kept.get("c", make);
  expect(await kept.get("a", make)).toBe(6);
});

test("does not cache a failure", async () => {
  const { make, kept } = maker();
  await expect(kept.get("a", () => Promise.reject(new Error("no database")))).rejects.toThrow("no database");
  expect(await kept.get("a", make)).toBe(1);
});
