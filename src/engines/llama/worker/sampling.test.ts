import { expect, test } from "bun:test";
import { choiceSeed } from "./sampling.ts";

test("uses small seeds unchanged, and spreads others over 32 bits", () => {
  expect([0, 7, 2 ** 32 - 1].map((seed) => choiceSeed(seed, 0))).toEqual([0, 7, 2 ** 32 - 1]);
  const large = [2 ** 32, 2 ** 33, 2 ** 53, 1e300, 1e301, -1, -(2 ** 40)].map((seed) => choiceSeed(seed, 0));
  expect(new Set(large).size).toBe(large.length);
  expect(large.every((seed) => Number.isInteger(seed) && seed > 2 ** 16 && seed < 2 ** 32)).toBe(true);
});

test("derives distinct choices from neighbouring seeds, and equal ones from equal seeds", () => {
  const seeds = Array.from({ length: 100 }, (_, seed) =>
    Array.from({ length: 8 }, (_, n) => choiceSeed(seed, n)),
  ).flat();
  expect(new Set(seeds).size).toBe(seeds.length);
  expect(choiceSeed(5, 3)).toBe(choiceSeed(5, 3));
});
