// Tests the cost of tokens: vendors' bills to the last digit, and that a mistaken price does no harm to the ledger.
import { describe, expect, test } from "bun:test";
import { type Price, rates } from "../domain/models/price.ts";
import type { UsageDetails, UsageParts } from "../domain/usage/usage-parts.ts";
import { nanoUsdOf, partOfPrice } from "./price.ts";

const noon = Date.parse("2026-11-22T12:00:00Z") / 1000;
const none: UsageParts = { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };

/**
 * Returns a cost. `details` are figures that few servers report; `cached`, `written` and `thought` are figures that
 * many report.
 */
function cost(
  price: Price,
  promptTokens: number,
  completionTokens: number,
  parts: { cached?: number; written?: number; thought?: number; at?: number } & UsageDetails = {},
): string {
  const { cached = 0, written = 0, thought = 0, at = noon, ...details } = parts;
  const reported = { cachedTokens: cached, cacheWriteTokens: written, reasoningTokens: thought, details };
  return usd(nanoUsdOf({ promptTokens, completionTokens, parts: reported }, price, at) ?? Number.NaN);
}

function usd(nanoUsd: number): string {
  return (nanoUsd / 1e9).toFixed(9).replace(/0+$/, "");
}

const sol: Price = {
  ...{ input: 2, cachedInput: 0.1, cacheWrite: 2.5, output: 10, search: 0.01 },
  variants: [
    { contextAbove: 272_000, input: 4, cachedInput: 0.2, cacheWrite: 5, output: 15 },
    { served: "flex", factor: 0.5 },
    { served: "eu", factor: 1.1 },
  ],
};
const opus: Price = {
  ...{ input: 4, cachedInput: 0.2, cacheWrite: 5, cacheWriteHour: 8, output: 20, search: 0.01 },
  variants: [
    { served: "fast", factor: 2 },
    { served: "us", factor: 1.1 },
    { served: "batch", input: 2, output: 10 },
  ],
};
const haiku: Price = { input: 0.1, cachedInput: 0.01, output: 0.5, variants: [{ contextAbove: 100_000, factor: 5 }] };
const argon: Price = {
  ...{ input: 2, cachedInput: 0.1, output: 10 },
  variants: [
    { served: "priority", factor: 1.8 },
    { from: Date.parse("2026-12-01T00:00:00Z") / 1000, factor: 2 },
  ],
};
const deepseek: Price = {
  ...{ input: 0.15, cachedInput: 0.003, output: 0.6 },
  variants: [
    {
      days: [1, 2, 3, 4, 5],
      hours: [
        { start: 60, end: 240 },
        { start: 360, end: 600 },
      ],
      factor: 2,
    },
  ],
};
const grok: Price = {
  ...{ input: 2, cachedInput: 0.5, output: 6 },
  variants: [{ contextAbove: 199_999, input: 4, cachedInput: 1, output: 12 }],
};
const groq: Price = {
  ...{ input: 0.15, cachedInput: 0.075, output: 0.6 },
  variants: [{ served: "batch", input: 0.075, output: 0.3 }],
};

// These are usage figures and bills of vendors, of November 2026.
test.each([
  ["cached and written tokens", cost(sol, 10_000, 500, { cached: 8_000, written: 1_000 }), "0.0103"],
  ["a tier", cost(sol, 10_000, 500, { cached: 8_000, written: 1_000, served: ["flex"] }), "0.00515"],
  ["a region", cost(sol, 10_000, 500, { cached: 8_000, written: 1_000, served: ["eu"] }), "0.01133"],
  ["a prompt as long as the usual rates reach", cost(sol, 272_000, 1_000, { cached: 200_000 }), "0.174"],
  ["one token more, for which all are dearer", cost(sol, 272_001, 1_000, { cached: 200_000 }), "0.343004"],
  ["searches", cost(sol, 1_234, 321, { searches: 2 }), "0.025678"],
  [
    "audio both ways",
    cost({ input: 2.5, inputAudio: 32, output: 10, outputAudio: 64 }, 300, 150, {
      inputAudioTokens: 200,
      outputAudioTokens: 100,
    }),
    "0.01355",
  ],
  [
    "sound and images that are told to be more than the prompt",
    cost({ input: 5, inputAudio: 10, inputImage: 8, output: 30 }, 100, 0, {
      inputAudioTokens: 80,
      inputImageTokens: 80,
    }),
    "0.00096",
  ],
  ["images", cost({ input: 5, inputImage: 8, output: 30 }, 60, 1_000, { inputImageTokens: 10 }), "0.03033"],
  [
    "two times to live",
    cost(opus, 33_012, 700, { cached: 30_000, written: 3_000, cacheWriteHourTokens: 2_000 }),
    "0.041048",
  ],
  [
    "a speed and a region at once",
    cost(opus, 33_012, 700, {
      ...{ cached: 30_000, written: 3_000, cacheWriteHourTokens: 2_000, served: ["fast", "us"] },
    }),
    "0.0903056",
  ],
  ["searches of a batch, which stay as dear", cost(opus, 100, 50, { searches: 3, served: ["batch"] }), "0.0307"],
  ["a long prompt out of the cache alone", cost(haiku, 100_000, 10, { cached: 100_000 }), "0.001005"],
  ["one fresh token behind it", cost(haiku, 100_001, 10, { cached: 100_000 }), "0.0050255"],
  ["thoughts at the rate of the answer", cost(argon, 5_000, 1_000, { cached: 4_000, thought: 800 }), "0.0124"],
  ["priority", cost(argon, 5_000, 1_000, { cached: 4_000, thought: 800, served: ["priority"] }), "0.02232"],
  ["a rate of later", cost(argon, 5_000, 1_000, { cached: 4_000, at: Date.parse("2026-12-01") / 1000 }), "0.0248"],
  [
    "dear audio in a prompt",
    cost({ input: 0.3, inputAudio: 1, output: 2.5 }, 1_600, 40, { inputAudioTokens: 1_500 }),
    "0.00163",
  ],
  ["tenths of a nano-dollar", cost(deepseek, 1_024, 300, { cached: 960 }), "0.00019248"],
  [
    "an hour of much use, on a Monday",
    cost(deepseek, 1_024, 300, { cached: 960, at: Date.parse("2026-11-23T06:00:00Z") / 1000 }),
    "0.00038496",
  ],
  [
    "the same hour of a Sunday",
    cost(deepseek, 1_024, 300, { cached: 960, at: Date.parse("2026-11-22T06:00:00Z") / 1000 }),
    "0.00019248",
  ],
  [
    "thoughts beside the answer",
    cost({ input: 1.25, cachedInput: 0.2, output: 2.5 }, 10_120, 4_308, { cached: 128, thought: 2_809 }),
    "0.0232856",
  ],
  ["a prompt below a cliff", cost(grok, 199_999, 150, { cached: 150_000 }), "0.175898"],
  ["a prompt on it", cost(grok, 200_000, 150, { cached: 150_000 }), "0.3518"],
  [
    "a few cached tokens",
    cost({ input: 0.7, cachedInput: 0.07, output: 2.1 }, 1_000, 100, { cached: 800 }),
    "0.000406",
  ],
  ["half a cent", cost(groq, 1_000, 100, { cached: 512 }), "0.0001716"],
  ["a batch whose cache is no cheaper", cost(groq, 1_000, 100, { cached: 512, served: ["batch"] }), "0.000105"],
  ["another cloud", cost({ input: 1.25, cachedInput: 0.125, output: 10 }, 1_000, 200, { cached: 640 }), "0.00253"],
])("matches the vendor's bill for %s to the last digit", (_, is, vendors) => {
  expect(is).toBe(vendors);
});

describe("a price", () => {
  const usage = { promptTokens: 1_000, completionTokens: 10 };
  const of = (price: Price | undefined, more: object = {}) => nanoUsdOf({ ...usage, ...more }, price, noon);

  test("yields whole nano-USD, none without a price, and no more than a database can store", () => {
    expect(of({ input: 0.15, output: 0.6 })).toBe(156_000);
    expect(of(undefined)).toBeNull();
    expect(of({ input: 1e18, output: 0 })).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("charges parts at the rate of the whole if they have no rate of their own", () => {
    const all = { cachedTokens: 400, cacheWriteTokens: 300, reasoningTokens: 5 };
    const details = { cacheWriteHourTokens: 100, inputAudioTokens: 100, outputImageTokens: 2 };
    expect(of({ input: 0.15, output: 0.6 }, { parts: { ...all, details } })).toBe(156_000);
    expect(of({ input: 0.15, output: 0.6, request: 0.001 }, { parts: all })).toBe(1_156_000);
  });

  test("charges each token once and no missing one, whatever parts a server reports", () => {
    const price = { input: 1, cachedInput: 0.1, cacheWrite: 2, output: 1, reasoning: 3, inputAudio: 9, outputAudio: 9 };
    const lies = { cachedTokens: 5_000, cacheWriteTokens: 5_000, reasoningTokens: 5_000 };
    const details = { cacheWriteHourTokens: 9_999, inputAudioTokens: 9_999, outputAudioTokens: 9_999 };
    expect(of(price, { parts: { ...lies, details } })).toBe(1_000 * 100 + 10 * 3_000);
    expect(of(price, { parts: { ...none, details } })).toBe(1_000 * 9_000 + 10 * 9_000);
  });

  test("charges the price of a request once, whatever else is counted", () => {
    const price = { input: 0, output: 0, request: 0.5, second: 0.25, image: 2 };
    const counted = (details: object) => ({ parts: { ...none, details } });
    expect(of(price, counted({ seconds: 4 }))).toBe(1_500_000_000);
    expect(of(price, counted({ seconds: 4, images: 2 }))).toBe(5_500_000_000);
    expect(of(price, { promptTokens: 0, completionTokens: 0, ...counted({ images: 1 }) })).toBe(2_500_000_000);
    expect(of(price, counted({ images: 0 }))).toBe(500_000_000);
  });

  test("rounds a part of a price half up", () => {
    expect([partOfPrice(3, 0.5), partOfPrice(1, 0.5), partOfPrice(1, 0.499_999), partOfPrice(7, 0)]).toEqual([
      ...[2, 1, 0, 0],
    ]);
    expect(partOfPrice(Number.MAX_SAFE_INTEGER, 1)).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("adds exactly when a sum in pico-USD exceeds a safe integer", () => {
    const many = { promptTokens: 90_071_992_835, completionTokens: 7 };
    // Added as floating-point numbers, the sum would be a pico-USD too high and would round up.
    expect(nanoUsdOf(many, { input: 1.000003, output: 0.000999 }, noon)).toBe(90_072_263_050_985);
  });

  test("charges units, searches and parts of tokens only if usage counts them", () => {
    const price = Object.fromEntries(rates.map(({ name, per }) => [name, per === "each" ? 1 : 0]));
    expect(of({ input: 0, output: 0, ...price })).toBe(1_000_000_000);
    const dear = { cachedInput: 9, cacheWrite: 9, inputAudio: 9, inputImage: 9, reasoning: 9, outputAudio: 9 };
    expect(of({ input: 1, output: 1, ...dear, outputImage: 9 })).toBe(1_010_000);
  });

  test("charges nothing for a request without an answer", () => {
    const price = { input: 1, output: 1, request: 0.5 };
    expect(nanoUsdOf({ promptTokens: 0, completionTokens: 0 }, price, noon)).toBe(0);
    expect(nanoUsdOf({ promptTokens: 0, completionTokens: 0, parts: none }, price, noon)).toBe(0);
    expect(nanoUsdOf({ promptTokens: 1, completionTokens: 0 }, price, noon)).toBe(500_001_000);
  });

  test.each([
    ["2026-11-27T21:59:59Z", 1],
    ["2026-11-27T22:00:00Z", 2],
    ["2026-11-28T01:59:59Z", 2],
    ["2026-11-28T02:00:00Z", 1],
    ["2026-11-28T22:00:00Z", 1],
    ["2026-11-27T01:00:00Z", 1],
  ])("applies Friday night hours until Saturday morning: at %s the factor is %i", (time, rate) => {
    const night = { hours: [{ start: 22 * 60, end: 2 * 60 }], days: [5], factor: 2 };
    expect(nanoUsdOf(usage, { input: 1, output: 1, variants: [night] }, Date.parse(time) / 1000)).toBe(
      rate * 1_010_000,
    );
  });

  test("ends price hours at the named minute", () => {
    const price = { input: 1, output: 1, variants: [{ hours: [{ start: 60, end: 120 }], factor: 2 }] };
    const rates = ["00:59:59", "01:00:00", "01:59:59", "02:00:00"].map((time) =>
      nanoUsdOf(usage, price, Date.parse(`2026-11-27T${time}Z`) / 1000),
    );
    expect(rates).toEqual([1_010_000, 2_020_000, 2_020_000, 1_010_000]);
  });

  test("applies a future price from its exact second", () => {
    const price = { input: 1, output: 1, variants: [{ from: 1_000, factor: 2 }] };
    expect([999, 1_000].map((at) => nanoUsdOf(usage, price, at))).toEqual([1_010_000, 2_020_000]);
  });

  test("rounds once, half up, for the smallest and largest sums", () => {
    expect(nanoUsdOf({ promptTokens: 1, completionTokens: 0 }, { input: 0.0375, output: 0 }, noon)).toBe(38);
    expect(nanoUsdOf({ promptTokens: 1, completionTokens: 1 }, { input: 0.0003, output: 0.0002 }, noon)).toBe(1);
    expect(nanoUsdOf({ promptTokens: 1, completionTokens: 0 }, { input: 0.000000001, output: 0 }, noon)).toBe(0);
    expect(nanoUsdOf({ promptTokens: 1e9, completionTokens: 0 }, { input: 0.000000001, output: 0 }, noon)).toBe(1_000);
    // This amount exceeds what floating point adds exactly.
    const large = { promptTokens: 9_000_000_001, completionTokens: 1 };
    expect(nanoUsdOf(large, { input: 15, output: 75 }, noon)).toBe(135_000_000_015_000 + 75_000);
  });

  test("computes the same in numbers as in exact arithmetic for random usage", () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let i = 0; i < 2_000; i++) {
      const [input, cachedInput, output] = [random(9_999), random(9_999), random(99_999)].map((rate) => rate / 1_000);
      const price = { input: input ?? 0, cachedInput: cachedInput ?? 0, output: output ?? 0 };
      const promptTokens = random(300_000);
      const reported = { ...none, cachedTokens: random(promptTokens + 1) };
      const counted = { promptTokens, completionTokens: random(50_000), parts: reported };
      // A rate in thousandths of a dollar for a million tokens is the same number of nano-dollars for one token.
      const per = (rate: number) => BigInt(Math.round(rate * 1_000));
      const fresh = BigInt(promptTokens - reported.cachedTokens) * per(price.input);
      const exact = fresh + BigInt(reported.cachedTokens) * per(price.cachedInput);
      const all = exact + BigInt(counted.completionTokens) * per(price.output);
      expect(nanoUsdOf(counted, price, noon)).toBe(Number(all));
      // These rates are no whole pico-dollars for a token, so floating-point numbers would not add them exactly.
      const finer = { ...price, request: 0.000_000_001, variants: [{ factor: 0.999_999 }] };
      const part = all * 999_999n + 1_000_000n;
      expect(nanoUsdOf(counted, finer, noon)).toBe(Number((part + 500_000n) / 1_000_000n));
    }
  });
});
