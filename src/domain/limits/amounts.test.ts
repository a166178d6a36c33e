// The table of limit amounts: its names are consistent, and objects made from it have exactly its members.
import { expect, test } from "bun:test";
import { amountLabel, amountSentence, amounts, amountText, byName, byWire } from "./amounts.ts";

test("names each amount alike in code and API, in their own spelling, and uniquely", () => {
  for (const { name, wire } of amounts) {
    expect(wire).toBe(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) as typeof wire);
  }
  expect(new Set(amounts.map(({ name }) => name)).size).toBe(amounts.length);
});

test("keeps each amount's example within its exact bounds", () => {
  for (const { least, most, example } of amounts) {
    expect(least).toBeLessThanOrEqual(example);
    expect(example).toBeLessThanOrEqual(most);
    expect(Number.isSafeInteger(most)).toBe(true);
  }
});

test("builds objects with a member for each given amount, in order", () => {
  expect(byName([amounts[0], amounts[1]], ({ least }) => least)).toEqual({ requestsPerMinute: 1, tokensPerMinute: 1 });
  expect(Object.keys(byWire(amounts, () => null))).toEqual(amounts.map(({ wire }) => wire));
});

test("describes an amount by its unit and period", () => {
  const [requests] = amounts;
  expect(amountText(requests)).toBe("requests per minute");
  expect(amountSentence(requests, "a")).toBe("Requests a minute");
  expect(amountLabel(requests)).toBe("Requests per minute");
  const spends = amounts.filter(({ unit }) => unit === "USD");
  expect(spends.map(amountLabel)).toEqual(spends.map(({ period }) => `Spend per ${period}`));
});
