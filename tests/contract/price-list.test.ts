// The list of vendors' prices: each of them can be charged by, and known bills come out of it to the last digit.
import { expect, test } from "bun:test";
import { priceRoutes } from "../../src/http/api/models/price-routes.ts";
import { nanoUsdOf } from "../../src/policy/price.ts";
import { listedPrice, listedPriceFault, matchingPrices, priceList } from "../../src/prices/price-list.ts";
import { priceRequest } from "../../src/wire/price.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { manualClock } from "../support/manual-clock.ts";
import { principalFor } from "../support/principal.ts";

const at = Date.parse("2026-11-22T12:00:00Z") / 1000;

test("names source and date of the price list, and allows each price as an own one", () => {
  const { source, date, prices, vendors } = priceList();
  expect(source).toMatch(/^genai-prices \d+\.\d+\.\d+ \(MIT\)$/);
  expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(prices.length).toBeGreaterThan(2_000);
  expect(vendors.length).toBeGreaterThan(40);
  for (const { name, price } of prices) expect([name, priceRequest.safeParse(price).error]).toEqual([name, undefined]);
  expect(new Set(prices.map(({ name }) => name)).size).toBe(prices.length);
});

test.each([
  ["openai/gpt-6.1-sol", [10_000, 500, 8_000, 1_000], 10_300_000],
  ["openai/gpt-6.1-sol", [272_001, 1_000, 200_000, 0], 343_004_000],
  ["anthropic/claude-haiku-5-5", [100_001, 10, 100_000, 0], 5_025_500],
  ["google/gemini-2.5-pro", [200_001, 100, 0, 0], 501_502_500],
  ["deepseek/deepseek-flash", [1_024, 300, 960, 0], 192_480],
] as const)("charges %s as its vendor does", (name, [promptTokens, completionTokens, cached, written], nanoUsd) => {
  const parts = { cachedTokens: cached, cacheWriteTokens: written, reasoningTokens: 0 };
  expect(nanoUsdOf({ promptTokens, completionTokens, parts }, listedPrice(name), at)).toBe(nanoUsd);
});

test("prices by serving model and time as the vendor does, future rates first", () => {
  const usage = { promptTokens: 1_000_000, completionTokens: 0 };
  const batch = { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, details: { served: ["batch"] } };
  const argon = listedPrice("google/gemini-4-argon");
  const december = Date.parse("2026-12-01T00:00:00Z") / 1000;
  expect(nanoUsdOf(usage, argon, at)).toBe(2_000_000_000);
  expect(nanoUsdOf(usage, argon, december)).toBe(4_000_000_000);
  expect(nanoUsdOf({ ...usage, parts: batch }, argon, at)).toBe(1_000_000_000);
  expect(nanoUsdOf({ ...usage, parts: batch }, argon, december)).toBe(2_000_000_000);
});

test("suggests the intended name for an unknown price", () => {
  expect(listedPriceFault("openai/gpt-6.1-sol")).toBeUndefined();
  expect(listedPriceFault("openai/gpt-6.1-soll")?.fix).toBe("Did you mean openai/gpt-6.1-sol?");
  expect(listedPriceFault("x")?.fix).toContain("headrace prices");
  expect(listedPrice("x")).toBeUndefined();
});

test("finds prices by parts of names, and one alone by its whole name", () => {
  expect(matchingPrices(["openai/gpt-6.1-sol"]).map(({ name }) => name)).toEqual(["openai/gpt-6.1-sol"]);
  const found = matchingPrices(["anthropic", "HAIKU"]);
  expect(found.length).toBeGreaterThan(1);
  for (const { name } of found) expect(name).toMatch(/anthropic.*haiku/);
});

test("searches the price list over the API by name and vendor, in pages with source and date", async () => {
  const [route] = priceRoutes({ clock: manualClock(at), requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }) });
  const get = async (query: string) => {
    const exchange = exchangeFor(incoming({ target: `/v1/prices${query}` }));
    const response = route && (await responseOf(() => route.handle(exchange, principalFor())));
    // biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
    return (await response?.json()) as any;
  };
  const { source, date, vendors, data, has_more: hasMore } = await get("");
  const { vendors: all, ...list } = priceList();
  expect([source, date, vendors.length, hasMore]).toEqual([list.source, list.date, all.length, true]);
  expect(data).toHaveLength(20);
  const haiku = await get("?search=HAIKU-5-5&vendor=anthropic");
  expect(haiku.data).toEqual([
    {
      ...{ object: "listed_price", id: "anthropic/claude-haiku-5-5", vendor: "anthropic", model: "claude-haiku-5-5" },
      ...{ context_length: expect.any(Number), price: matchingPrices(["anthropic/claude-haiku-5-5"])[0]?.price },
    },
  ]);
  const second = await get(`?limit=20&after=${encodeURIComponent(data.at(-1).id)}`);
  expect(second.data[0].id).toBe(list.prices[20]?.name);
  expect((await get("?search=no-such-model")).data).toEqual([]);
  expect((await get("?after=nothing/at-all")).error.message).toStartWith("after: ");
});
