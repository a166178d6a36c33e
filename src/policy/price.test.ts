// What tokens cost, and what a price that is a mistake must not do to the ledger.
import { expect, test } from "bun:test";
import { nanoUsdOf } from "./price.ts";

test("a price gives whole nano-USD; there is nothing without a price, and never more than a database takes", () => {
  const usage = { promptTokens: 1_000, completionTokens: 10 };
  expect(nanoUsdOf(usage, { input: 0.15, output: 0.6 })).toBe(156_000);
  expect(nanoUsdOf(usage, undefined)).toBeNull();
  expect(nanoUsdOf(usage, { input: 1e18, output: 0 })).toBe(Number.MAX_SAFE_INTEGER);
});
