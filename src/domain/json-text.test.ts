import { describe, expect, test } from "bun:test";
import { editObject, scanObject } from "./json-text.ts";

const generous = { depth: 64, members: 1_000, names: 1_000, values: 1_000 };
const edit = (text: string, edits: Record<string, string | null>) => editObject(text, scanObject(text), edits);

describe("scanObject", () => {
  test("finds every top-level member and its exact value text", () => {
    const text = '{ "a" : 1 , "b":{"a":[1,2,{"c":"}"}]},"c" : "x\\"y,}" , "d":[ ] }';
    const values = [...scanObject(text)].map(([name, m]) => [name, text.slice(m.valueStart, m.valueEnd)]);
    expect(values).toEqual([
      ["a", "1"],
      ["b", '{"a":[1,2,{"c":"}"}]}'],
      ["c", '"x\\"y,}"'],
      ["d", "[ ]"],
    ]);
  });
  test("sees through escaped names", () => {
    expect([...scanObject('{"mod\\u0065l":"x"}').keys()]).toEqual(["model"]);
  });
  test("refuses a repeated name, also a hidden one, but not a nested one", () => {
    expect(() => scanObject('{"model":"a","mod\\u0065l":"b"}')).toThrow("`model` appears twice");
    expect(() => scanObject('{"model":"a","x":{"model":"b"}}')).not.toThrow();
  });
  test("refuses nesting beyond the limit without recursing", () => {
    expect(() => scanObject("[".repeat(100_000), { ...generous, depth: 64 })).toThrow("64 levels");
    expect(() => scanObject(`${'{"a":'.repeat(64)}1${"}".repeat(64)}`, { ...generous, depth: 64 })).not.toThrow();
  });
  test("brackets and escapes in strings do not count", () => {
    expect(() => scanObject(JSON.stringify({ a: '[[[["\\\\"]]]\\' }), { ...generous, depth: 1 })).not.toThrow();
  });
});

describe("editObject", () => {
  test("leaves everything else byte for byte", () => {
    expect(edit('{"model": "a",  "seed":12345678901234567890, "x":1.0}', { model: '"b"' })).toBe(
      '{"model": "b",  "seed":12345678901234567890, "x":1.0}',
    );
  });
  test("replaces, adds and removes to the same object as editing the parsed one", () => {
    const texts = [
      '{"a":1,"b":2,"c":3}',
      '{ "a" : 1 }',
      "{}",
      '{"b":[1,{"a":2}] , "a":"},"}',
      '{"c":null,\n"a":true\n}\n',
    ];
    const values = [null, '"new"', '{"x":[1]}'];
    for (const text of texts) {
      for (const a of values) {
        for (const b of values) {
          for (const c of values) {
            const expected: Record<string, unknown> = JSON.parse(text);
            for (const [name, value] of Object.entries({ a, b, c })) {
              if (value === null) delete expected[name];
              else expected[name] = JSON.parse(value);
            }
            expect(JSON.parse(edit(text, { a, b, c }))).toEqual(expected);
          }
        }
      }
    }
  });
});
