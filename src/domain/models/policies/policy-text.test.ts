// Model policies survive the conversion from and to the API's form. The code has money in whole nano-USD.
import { expect, test } from "bun:test";
import { policiesFromWire, policiesToWire } from "./policy-text.ts";

const written = {
  continuation: true,
  overflow: {
    to: [
      { upstream: "cloud", cost: { input: 0.1, output: 0.4 }, cost_of: null },
      { upstream: "other", cost: null, cost_of: "openai/gpt-5" },
    ],
    ...{ after_seconds: 2.5, prompt_tokens_above: 30_000, hours: ["18:00-06:00", "12:30-24:00"] },
    ...{ most_usd_per_request: 0.000_000_001, spend: { usd: 0.1, per: "week" as const } },
  },
  cache: {
    ...{ requests: "all" as const, ttl_seconds: 60, price_factor: 0.5 },
    semantic: { model: "embedder", threshold: 0.95 },
  },
  guardrails: ["a", "b"],
  shadow: { model: "next", percent: 2.5 },
  split: [{ model: "next", percent: 10 }],
};

test("writes policies as they were read", () => {
  const policies = policiesFromWire(written);
  expect(policies && policiesToWire(policies)).toEqual(written);
  expect(policies?.overflow).toMatchObject({ mostNanoUsdPerRequest: 1, spend: { nanoUsd: 100_000_000, per: "week" } });
});

test("fills in open values for omitted policy members, and the cache's defaults", () => {
  const policies = policiesFromWire({ overflow: { to: [{ upstream: "cloud" }] }, cache: {} });
  expect(policies && policiesToWire(policies)).toEqual({
    overflow: {
      to: [{ upstream: "cloud", cost: null, cost_of: null }],
      ...{ after_seconds: null, prompt_tokens_above: null, hours: null, most_usd_per_request: null, spend: null },
    },
    cache: { requests: "deterministic", ttl_seconds: 3_600, price_factor: 0, semantic: null },
  });
});

test("treats switched-off policies as none", () => {
  const off = { continuation: false, overflow: null, cache: null, guardrails: [], shadow: null, split: [] };
  expect([policiesFromWire({}), policiesFromWire(off)]).toEqual([undefined, undefined]);
});
