// The comparison of a copied database with its source: every count and every sum must be the same.
import { describe, expect, test } from "bun:test";
import { comparisonOf } from "./copy-records.ts";

const columns = [
  { name: "tokens", kind: "whole" },
  { name: "share", kind: "real" },
  { name: "label", kind: "text" },
] as const;
const table = { name: "records", columns, key: ["id"], condition: "" };

/** The number of rows, then for each column the number of values that are not null and both halves of their sum. */
const same = ["3", ...["3", "1", "7"], ...["2", "0.5", "0"], ...["1", "0", "12"]];

function differencesWith(index: number, value: string | null): readonly string[] {
  return comparisonOf(table, same, same.with(index, value as string)).differences;
}

describe("a comparison of two databases", () => {
  test("reports no difference between equal figures, and both sums of each column", () => {
    expect(comparisonOf(table, same, [...same])).toEqual({
      ...{ table: "records", rows: [3, 3], differences: [] },
      sums: { tokens: ["4294967303", "4294967303"], share: ["0.5", "0.5"], label: ["12", "12"] },
    });
  });

  test.each([
    ["the number of rows", 0, "4", "rows"],
    ["a null in the place of a number", 1, "2", "tokens"],
    ["the higher half of a sum", 2, "2", "tokens"],
    ["the lower half of a sum", 3, "8", "tokens"],
    ["a null in the place of a fraction", 4, "1", "share"],
    ["a fraction", 5, "0.6", "share"],
    ["a null in the place of a text", 7, "0", "label"],
    ["the bytes of texts", 9, "13", "label"],
    ["a sum that is missing", 3, null, "tokens"],
  ])("reports a difference in %s", (_what, index, value, name) => {
    expect(differencesWith(index, value)).toEqual([name]);
  });

  test("treats fractions as equal that differ only by the order of addition", () => {
    expect(differencesWith(5, "0.5000000001")).toEqual([]);
    expect(differencesWith(5, "0.50000001")).toEqual(["share"]);
  });
});
