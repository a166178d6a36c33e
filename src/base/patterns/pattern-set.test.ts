import { expect, test } from "bun:test";
import { PatternScan } from "./pattern-scan.ts";
import { PatternSet } from "./pattern-set.ts";

function marked(pattern: string, text: string): string {
  const scan = new PatternScan(new PatternSet([{ name: "x", pattern }]));
  return [...scan.feed(text), ...scan.end()].map((one) => (one.found ? `<${one.text}>` : one.text)).join("");
}

test.each([
  ["KD-[0-9]{3}", "a KD-123, KD-12", "a <KD-123>, KD-12"],
  ["(?i)secret", "SeCreT secre", "<SeCreT> secre"],
  ["a|ab|b+c?", "xabbbcx", "x<abbbc>x"],
  ["^start", "start start", "<start> start"],
  ["end$", "end end", "end <end>"],
  ["\\bcat\\b", "cat concat cat", "<cat> concat <cat>"],
  ["a{2,3}", "a aa aaaa", "a <aa> <aaaa>"],
  ["[^a-z ]+", "abc ÄÖ x", "abc <ÄÖ> x"],
  ["(?:a?){20}a{20}", `${"a".repeat(20)}b`, `<${"a".repeat(20)}>b`],
])("finds all matches of %s and merges overlapping ones", (pattern, text, expected) => {
  expect(marked(pattern, text)).toBe(expected);
});

test.each([
  ["(?<=a)b", "looks ahead or behind"],
  ["(a)\\1", "refers back to a group"],
  ["a*", "matches a text of no characters"],
  ["a{2000}", "repeats more than 1000 times"],
  ["(a{100}){100}", "more than 2000 states"],
  ["(a", "nothing closes"],
  ["\\q", "not known"],
  ["+", "repeats nothing"],
])("refuses %s by the name of the pattern, with the fault", (pattern, message) => {
  expect(() => new PatternSet([{ name: "own", pattern }])).toThrow(message);
  expect(() => new PatternSet([{ name: "own", pattern }])).toThrow("`own`");
});

test("refuses patterns that are too large together, naming the one beyond the bound", () => {
  const patterns = Array.from({ length: 256 }, (_, nth) => ({ name: `p${nth}`, pattern: "[a-z]{0,135}[a-z]{0,135}y" }));
  expect(() => new PatternSet(patterns)).toThrow(/^The patterns up to `p\d+` are too large together\./);
});
