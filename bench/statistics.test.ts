import { expect, test } from "bun:test";
import { median, percentile, spread } from "./statistics.ts";

test("takes the middle value as the median, or the mean of the two middle ones", () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 2, 9])).toBe(3);
  expect(median([])).toBeNaN();
});

test("keeps the minimum and maximum of a spread", () => {
  expect(spread([3, 1, 2])).toEqual({ median: 2, least: 1, most: 3 });
});

test("computes nearest-rank percentiles", () => {
  const hundred = Float64Array.from({ length: 100 }, (_, index) => index + 1);
  expect(percentile(hundred, 0.5)).toBe(50);
  expect(percentile(hundred, 0.99)).toBe(99);
  expect(percentile([7], 0.99)).toBe(7);
});
