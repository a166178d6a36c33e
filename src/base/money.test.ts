// Money is shown with the digits that it has, from a billionth to the largest sum.
import { expect, test } from "bun:test";
import { nanoOfUsd, usdOf, usdText } from "./money.ts";

test.each([
  [0, "0", "0.00"],
  [1, "0.000000001", "0.000000001"],
  [10, "0.00000001", "0.00000001"],
  [100_000_000, "0.1", "0.10"],
  [999_999_999, "0.999999999", "0.999999999"],
  [1_000_000_000, "1", "1.00"],
  [12_345_678_900, "12.3456789", "12.3456789"],
  // Dividing and rounding gives 9007199.254740993 and 9007199.
  [Number.MAX_SAFE_INTEGER, "9007199.254740991", "9007199.254740991"],
  [8_999_999_999_999_999, "8999999.999999999", "8999999.999999999"],
])("writes %d nano-USD as %s USD", (nanoUsd, all, withCents) => {
  expect([usdText(nanoUsd), usdText(nanoUsd, 2)]).toEqual([all, withCents]);
});

test("writes money in JSON as an exact decimal that reads back unchanged", () => {
  let nanoUsd = 1;
  for (let i = 0; nanoUsd < 8e15; i++, nanoUsd = nanoUsd * 3 + (i % 7)) {
    expect([JSON.parse(JSON.stringify(usdOf(nanoUsd))), nanoOfUsd(usdOf(nanoUsd))]).toEqual([
      Number(usdText(nanoUsd)),
      nanoUsd,
    ]);
  }
});

test.each([
  [2.01, 2_010_000_000],
  [0.57, 570_000_000],
  [0.000000001, 1],
])("reads %d USD as the nearest whole nano-USD despite binary fractions", (usd, nanoUsd) => {
  expect(nanoOfUsd(usd)).toBe(nanoUsd);
});
