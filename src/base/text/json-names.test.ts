// Names that an object has twice are found wherever they stand, and nothing else is taken for one.
import { expect, test } from "bun:test";
import { countNames, findRepeatedName } from "./json-names.ts";
import { scanObject } from "./json-text.ts";

function isCounted(text: string): boolean {
  return countNames(JSON.parse(text)) === scanObject(text).names;
}

test.each([
  ["{}"],
  ['{"a":{"a":[{"a":1},{"a":1}]},"b":":"}'],
  ['[{"a":1},{"a":"\\"a\\":1,\\"a\\":2"}]'],
  ['{ "a" : [ ] , "A" : { } , "__proto__" : { "__proto__" : 1 } , "1" : { "0" : "{:" } }'],
])("counts as many names as the value has without a repetition: %s", (text) => {
  if (text.startsWith("{")) expect(isCounted(text)).toBe(true);
  expect(findRepeatedName(text)).toBeUndefined();
});

test.each<[string, (string | number)[]]>([
  ['{"a":{"b":1,"b":2}}', ["a", "b"]],
  ['{"a":[0,{"b":1},{"c":[],"b":{"b":0},"\\u0062":2}]}', ["a", 2, "b"]],
  ['{"a":{"__proto__":1,"__proto__":2}}', ["a", "__proto__"]],
  ['{"a":"}","b":[[{"":1, "" : 2}]]}', ["b", 0, 0, ""]],
])("finds a repeated name: %s", (text, path) => {
  expect(isCounted(text)).toBe(false);
  expect(findRepeatedName(text)).toEqual(path);
});

test("searches names in linear time, among many, deeply nested and behind backslashes", () => {
  const last = '"z":1,"z":2}';
  const texts = (size: number) => [
    `{${Array.from({ length: size }, (_, i) => `"${i}":0,`).join("")}${last}`,
    `{"a":[${'{"b":['.repeat(size)}${"]}".repeat(size)}],${last}`,
    `{"a":"${'\\\\\\"'.repeat(size)}",${last}`,
  ];
  const timeOf = (text: string) => {
    const times = Array.from({ length: 5 }, () => {
      const begun = performance.now();
      findRepeatedName(text);
      return performance.now() - begun;
    });
    return Math.min(...times);
  };
  for (const [index, text] of texts(100_000).entries()) {
    expect(findRepeatedName(text)).toEqual(["z"]);
    expect(timeOf(text)).toBeLessThan(100 * Math.max(timeOf(texts(10_000)[index] ?? ""), 0.5));
  }
});
