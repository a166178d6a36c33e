// What is kept of answers that take long to make, and for how long.
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

test("what took long is kept for ten times as long, and those who ask together share one", async () => {
  const { clock, made, make, kept } = maker();
  made.tookMs = 500;
  expect(await Promise.all([kept.get("a", make), kept.get("a", make)])).toEqual([1, 1]);
  clock.now += 4_999;
  expect(await kept.get("a", make)).toBe(1);
  clock.now += 1;
  expect(await kept.get("a", make)).toBe(2);
});

test("what was quick is kept for a second, nothing for longer than ten seconds, and no more than there is room for", async () => {
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

test("what failed is asked for again", async () => {
  const { make, kept } = maker();
  await expect(kept.get("a", () => Promise.reject(new Error("no database")))).rejects.toThrow("no database");
  expect(await kept.get("a", make)).toBe(1);
});
