import { describe, expect, test } from "bun:test";
import { editObject, scanObject } from "./json-text.ts";

const generous = { depth: 64, members: 1_000, names: 1_000, values: 1_000, containers: 1e6 };
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
  test("decodes escaped names", () => {
    expect([...scanObject('{"mod\\u0065l":"x"}').keys()]).toEqual(["model"]);
  });
  test("refuses a repeated name, an escaped one too, but not a nested one", () => {
    expect(() => scanObject('{"model":"a","mod\\u0065l":"b"}')).toThrow("`model` appears twice");
    expect(() => scanObject('{"model":"a","x":{"model":"b"}}')).not.toThrow();
  });
  test("refuses nesting beyond the limit without recursion", () => {
    expect(() => scanObject("[".repeat(100_000), { ...generous, depth: 64 })).toThrow("64 levels");
    expect(() => scanObject(`${'{"a":'.repeat(64)}1${"}".repeat(64)}`, { ...generous, depth: 64 })).not.toThrow();
  });
  test("refuses a repeated name among hundreds, at any position", () => {
    const fields = Array.from({ length: 300 }, (_, i) => `"n${i}":${i}`);
    expect(scanObject(`{${fields.join()}}`).get("n299")).toBeDefined();
    for (const again of [0, 15, 16, 17, 299]) {
      expect(() => scanObject(`{${[...fields, `"n${again}":0`].join()}}`)).toThrow(`\`n${again}\` appears twice`);
    }
  });
  test("counts members, names, values and containers at the limit and beyond", () => {
    const text = '{"a":[1,2,{"b":"x:,"}],"c":{"d":1,"e":2}}';
    const exact = { depth: 3, members: 2, names: 5, values: 4, containers: 4 };
    expect(scanObject(text, exact).size).toBe(2);
    for (const name of ["depth", "members", "names", "values", "containers"] as const) {
      expect(() => scanObject(text, { ...exact, [name]: exact[name] - 1 })).toThrow();
    }
  });
  test("finds the same members as the parser in any spacing and escaping", () => {
    let seed = 1;
    const below = (count: number) => {
      seed = (seed * 48271) % 2147483647;
      return seed % count;
    };
    const space = () => " \n\t".repeat(2).slice(0, below(3));
    const string = () => {
      const raw = ["", "a", "{[,:", '\\"', "\\\\", "\\u0041", "é", "x".repeat(40), '\\\\\\"]'];
      return `"${raw[below(raw.length)]}${raw[below(raw.length)]}"`;
    };
    const value = (depth: number): string => {
      const kind = below(depth > 3 ? 4 : 6);
      if (kind < 4) return ["1", "-2.5e3", "null", string()][kind] ?? "";
      const items = Array.from({ length: below(4) }, () => `${space()}${value(depth + 1)}${space()}`);
      if (kind === 4) return `[${items.join()}]`;
      return `{${items.map((item) => `${space()}${string()}${space()}:${item}`).join()}}`;
    };
    for (let round = 0; round < 2_000; round++) {
      const parts = Array.from({ length: below(20) }, (_, i) => {
        const name = JSON.stringify(`${i}${["", "é", '"', "\\"][below(4)]}`).replace("0", below(2) ? "0" : "\\u0030");
        return `${space()}${name}${space()}:${space()}${value(0)}${space()}`;
      });
      const text = `${space()}{${parts.join()}${parts.length === 0 ? space() : ""}}${space()}`;
      const parsed: Record<string, unknown> = JSON.parse(text);
      const found = [...scanObject(text)];
      expect(
        Object.fromEntries(found.map(([name, m]) => [name, JSON.parse(text.slice(m.valueStart, m.valueEnd))])),
      ).toEqual(parsed);
      expect(
        found.every(([, { keyStart, valueEnd }]) => text[keyStart] === '"' && /\S/.test(text[valueEnd - 1] ?? "")),
      ).toBe(true);
    }
  });
  test("ignores brackets and escapes in strings", () => {
    expect(() => scanObject(JSON.stringify({ a: '[[[["\\\\"]]]\\' }), { ...generous, depth: 1 })).not.toThrow();
  });
});

describe("editObject", () => {
  test("keeps everything else byte for byte", () => {
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
