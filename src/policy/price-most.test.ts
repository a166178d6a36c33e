// Tests that the reservation for a request is never less than its cost, for any price.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Price, type PriceVariant, type RateName, rates } from "../domain/models/price.ts";
import { maxNanoUsdOf, nanoUsdOf, type PricedRequest } from "./price.ts";

const tiers = ["flex", "priority", "us"] as const;
const noon = Date.parse("2026-11-22T12:00:00Z") / 1000;

const rate = fc.oneof(
  fc.integer({ min: 0, max: 100_000_000 }).map((n) => n / 1_000_000),
  fc.constantFrom(0, 1e-9, 3.625),
);
const ratesOf = (names: readonly RateName[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, rate])), { requiredKeys: [] });
/** The names of all rates except that of searches, whose number is unknown in advance. */
const allRates = rates.map(({ name }) => name).filter((name) => name !== "search");
const variant: fc.Arbitrary<PriceVariant> = fc
  .record({
    when: fc.oneof(
      fc.record({ contextAbove: fc.integer({ min: 0, max: 3_000 }) }),
      fc.record({ served: fc.constantFrom(...tiers) }),
      fc.record({ from: fc.constantFrom(noon - 60, noon + 60) }),
      fc.record({ contextAbove: fc.integer({ min: 0, max: 3_000 }), served: fc.constantFrom(...tiers) }),
    ),
    said: ratesOf(allRates),
    factor: fc.option(
      fc.integer({ min: 0, max: 6_000_000 }).map((n) => n / 1_000_000),
      { nil: undefined },
    ),
  })
  .map(({ when, said, factor }) => ({ ...when, ...said, ...(factor === undefined ? {} : { factor }) }));
const price: fc.Arbitrary<Price> = fc
  .record({ base: ratesOf(allRates), input: rate, output: rate, variants: fc.array(variant, { maxLength: 4 }) })
  .map(({ base, input, output, variants }) => ({ ...base, input, output, variants }));

const request: fc.Arbitrary<PricedRequest> = fc
  .record({
    promptTokens: fc.integer({ min: 0, max: 4_000 }),
    completionTokens: fc.integer({ min: 0, max: 4_000 }),
    cachedShare: fc.constantFrom(0, 0, 0.5, 1),
    hasMedia: fc.boolean(),
    asked: fc.subarray([...tiers]),
  })
  .map(({ cachedShare, ...size }) => ({ ...size, cachedTokens: Math.floor(size.promptTokens * cachedShare) }));

const part = fc.double({ min: 0, max: 1, noNaN: true });

describe("the reserved price of a request", () => {
  test("never charges more than reserved for usage within the reserved tokens, except for searches", () => {
    fc.assert(
      fc.property(
        price,
        request,
        fc.array(part, { minLength: 10, maxLength: 10 }),
        fc.subarray([...tiers]),
        (of, size, at, served) => {
          const share = (i: number, whole: number) => Math.floor((at[i] ?? 0) * whole);
          // The cached tokens are at least as many as expected: with fewer, the cost may exceed the reservation.
          const promptTokens = Math.max(size.cachedTokens, share(0, size.promptTokens));
          const completionTokens = share(1, size.completionTokens);
          const cachedTokens = size.cachedTokens;
          const cacheWriteTokens = share(2, promptTokens - cachedTokens);
          const media = size.hasMedia
            ? { inputAudioTokens: share(3, promptTokens), inputImageTokens: share(4, promptTokens) }
            : {};
          const details = {
            ...media,
            cacheWriteHourTokens: share(5, cacheWriteTokens),
            outputAudioTokens: share(6, completionTokens),
            outputImageTokens: share(7, completionTokens),
            served: served.filter((name) => size.asked.includes(name)),
          };
          const parts = { cachedTokens, cacheWriteTokens, reasoningTokens: share(8, completionTokens), details };
          const charged = nanoUsdOf({ promptTokens, completionTokens, parts }, of, noon) ?? 0;
          expect(charged).toBeLessThanOrEqual(maxNanoUsdOf(size, of, noon));
        },
      ),
      { numRuns: 3_000 },
    );
  });

  const plain: PricedRequest = {
    promptTokens: 1_000,
    completionTokens: 0,
    cachedTokens: 0,
    hasMedia: false,
    asked: [],
  };
  const most = (of: Partial<Price>, more: Partial<PricedRequest> = {}) =>
    maxNanoUsdOf({ ...plain, ...more }, { input: 1, output: 4, ...of }, noon);

  test("reserves a prompt at the cache-write rate if that is dearer, and media at their own rate", () => {
    expect(most({ cacheWrite: 1.25, cachedInput: 0.1, inputAudio: 40 })).toBe(1_250_000);
    expect(most({ cacheWrite: 1.25, cacheWriteHour: 2 })).toBe(2_000_000);
    expect(most({ inputAudio: 40 }, { hasMedia: true })).toBe(40_000_000);
    expect(most({ cacheWrite: 1.25, cachedInput: 0.1 }, { cachedTokens: 800 })).toBe(800 * 100 + 200 * 1_250);
  });

  test("counts a prompt within a quarter of a length limit as above the limit", () => {
    const variants = [{ contextAbove: 1_200, input: 2 }];
    expect(most({ variants })).toBe(2_000_000);
    expect(most({ variants }, { promptTokens: 960 })).toBe(960_000);
  });

  test("reserves a dearer service tier if the request asks for one, but not a cheaper one", () => {
    const variants = [
      { served: "priority", factor: 2 },
      { served: "flex", factor: 0.5 },
    ];
    expect(most({ variants })).toBe(1_000_000);
    expect(most({ variants }, { asked: ["priority"] })).toBe(2_000_000);
    expect(most({ variants }, { asked: ["flex"] })).toBe(1_000_000);
  });
});

test("reserves the price of units that are not tokens", () => {
  const counted = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, hasMedia: false, asked: [] };
  const units = { seconds: 90, images: 2 };
  const price = { input: 0, output: 0, second: 0.001, image: 0.04, request: 0.5 };
  expect(maxNanoUsdOf({ ...counted, units }, price, noon)).toBe(670_000_000);
  expect(maxNanoUsdOf(counted, price, noon)).toBe(500_000_000);
});
