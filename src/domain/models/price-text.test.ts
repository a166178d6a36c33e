// Prices in the form of the API and of headrace.yaml: a written price means the same when it is read back.
import { expect, test } from "bun:test";
import { hoursFromText, type PriceWire, priceFromWire, priceToWire } from "./price-text.ts";

const full: PriceWire = {
  ...{ input: 1, output: 2, cached_input: 0.1, request: 0.5, second: 0.01 },
  variants: [
    { context_above: 200_000, input: 2 },
    { served: "priority", factor: 1.8 },
    { from: "2026-12-01", hours: ["22:00-02:30", "06:00-24:00"], days: ["sun", "sat"], factor: 0.5 },
    { from: "2026-12-01T08:00:00Z", output: 9 },
  ],
};

test("reads conditions, factors and rates of a price in the units that it is kept in", () => {
  expect(priceFromWire(full)).toEqual({
    ...{ input: 1, output: 2, cachedInput: 0.1, request: 0.5, second: 0.01 },
    variants: [
      { contextAbove: 200_000, input: 2 },
      { served: "priority", factor: 1.8 },
      {
        ...{ from: Date.UTC(2026, 11, 1) / 1_000, days: [0, 6], factor: 0.5 },
        hours: [
          { start: 1_320, end: 150 },
          { start: 360, end: 1_440 },
        ],
      },
      { from: Date.UTC(2026, 11, 1, 8) / 1_000, output: 9 },
    ],
  });
});

test("writes a price as it was read", () => {
  expect(priceToWire(priceFromWire(full))).toEqual(full);
  expect(priceToWire(priceFromWire({ input: 0, output: 0 }))).toEqual({ input: 0, output: 0 });
  expect(hoursFromText("00:00-00:01")).toEqual({ start: 0, end: 1 });
});
