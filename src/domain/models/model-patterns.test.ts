// Model patterns: which ids they match, which of two patterns is the wider one, and what two lists have in common.
import { expect, test } from "bun:test";
import { commonPatterns, coversPattern, matchesModel, modelPatternPattern } from "./model-patterns.ts";

test("matches a whole id, or the beginning of one before an asterisk", () => {
  expect(matchesModel(["gpt-*", "tiny"], "gpt-6")).toBe(true);
  expect(matchesModel(["gpt-*", "tiny"], "gpt-")).toBe(true);
  expect(matchesModel(["gpt-*", "tiny"], "tiny")).toBe(true);
  expect(matchesModel(["gpt-*", "tiny"], "tiny-2")).toBe(false);
  expect(matchesModel(["*"], "anything")).toBe(true);
  expect(matchesModel([], "anything")).toBe(false);
});

test("accepts an asterisk only at the end of a non-empty pattern", () => {
  const fine = ["a", "a*", "org/model:7b*"].filter((text) => modelPatternPattern.test(text));
  expect(fine).toEqual(["a", "a*", "org/model:7b*"]);
  expect(["", "*", "*a", "a*b", "a b", "a**"].filter((text) => modelPatternPattern.test(text))).toEqual([]);
});

test("covers a narrower pattern by a wider one, and never the reverse", () => {
  for (const [outer, inner] of [
    ["a*", "a"],
    ["a*", "ab*"],
    ["a*", "a*"],
    ["ab", "ab"],
  ] as const) {
    expect(coversPattern(outer, inner), `${outer} over ${inner}`).toBe(true);
    if (outer !== inner) expect(coversPattern(inner, outer), `${inner} over ${outer}`).toBe(false);
  }
  expect(coversPattern("ab*", "a")).toBe(false);
});

test("intersects two lists of patterns", () => {
  expect(commonPatterns(["gpt-*", "tiny"], ["gpt-6*", "tiny", "other"])).toEqual(["gpt-6*", "tiny"]);
  expect(commonPatterns(["gpt-6"], ["gpt-*", "gpt-6*"])).toEqual(["gpt-6"]);
  expect(commonPatterns(["a*"], ["b*"])).toEqual([]);
});
