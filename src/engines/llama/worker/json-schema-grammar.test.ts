import { beforeAll, expect, test } from "bun:test";
import * as library from "node-llama-cpp";
import { anyObjectGrammar } from "./json-grammar.ts";
import { schemaGrammar } from "./json-schema-grammar.ts";

let llama: library.Llama;

beforeAll(async () => {
  llama = await library.getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: 1,
  });
});

/** Asks llama.cpp itself whether the grammar lets the whole text through. */
function accepts(grammar: string, text: string): boolean {
  const compiled = new library.LlamaGrammar(llama, { grammar });
  return (compiled as unknown as { _testText: (text: string) => boolean })._testText(text);
}

function translate(schema: unknown, strict = false): string {
  return schemaGrammar(schema, { path: "schema", strict });
}

const cases: { name: string; schema: object; valid: string[]; invalid: string[] }[] = [
  {
    name: "required properties in order, optional ones present or not",
    schema: {
      type: "object",
      properties: { a: { type: "string" }, b: { type: "integer" }, c: { type: ["string", "null"] } },
      required: ["a"],
    },
    valid: ['{"a":"x"}', '{"a": "é\\"\\n", "b": -1}', '{\n  "a": "x",\n  "c": null\n}', '{"a":"","b":2,"c":"z"}'],
    invalid: ["{}", '{"b":1}', '{"a":1}', '{"a":"x","d":1}', '{"a":"x","b":1.5}', '{"a":"x"} '],
  },
  {
    name: "only optional properties",
    schema: { type: "object", properties: { a: { type: "number" }, b: { type: "boolean" } } },
    valid: ["{}", '{"a":1.5e3}', '{"b":true}', '{"a":1,"b":false}'],
    invalid: ['{"c":1}', "[]"],
  },
  { name: "no properties at all", schema: { type: "object", properties: {} }, valid: ["{}"], invalid: ['{"a":1}'] },
  { name: "any object", schema: { type: "object" }, valid: ["{}", '{"x":[1,{"y":null}]}'], invalid: ["[]"] },
  {
    name: "additional properties of a type",
    schema: { type: "object", properties: { a: true }, required: ["a"], additionalProperties: { type: "integer" } },
    valid: ['{"a":[]}', '{"a":1,"z":2,"y":3}'],
    invalid: ['{"a":1,"z":"q"}'],
  },
  {
    name: "arrays with bounds and enums",
    schema: { type: "array", items: { enum: ["a", 'b"c', 3] }, minItems: 1, maxItems: 3 },
    valid: ['["a"]', '["a", "b\\"c", 3]'],
    invalid: ["[]", '["a","a","a","a"]', '["x"]'],
  },
  {
    name: "arrays of fixed form",
    schema: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false },
    valid: ['["a",1]'],
    invalid: ['["a"]', '["a",1,2]'],
  },
  {
    name: "alternatives and null",
    schema: { anyOf: [{ type: "string", maxLength: 3 }, { type: "null" }] },
    valid: ['"abc"', "null"],
    invalid: ['"abcd"', "1"],
  },
  {
    name: "schemas that contain themselves",
    schema: {
      $defs: {
        node: {
          type: "object",
          properties: { next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } },
          required: ["next"],
        },
      },
      $ref: "#/$defs/node",
    },
    valid: ['{"next":{"next":null}}'],
    invalid: ['{"next":{}}'],
  },
  {
    name: "allOf as one object",
    schema: {
      allOf: [
        { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
        { properties: { b: { const: 1 } }, required: ["b"] },
      ],
    },
    valid: ['{"a":"x","b":1}'],
    invalid: ['{"a":"x"}', '{"a":"x","b":2}'],
  },
  {
    name: "formats of date and time",
    schema: { type: "string", format: "date-time" },
    valid: ['"2026-02-03T10:11:12Z"'],
    invalid: ['"yesterday"', '"2026-13-03T10:11:12Z"'],
  },
  {
    name: "a keyword that is left to the model when strictness is not asked for",
    schema: { type: "integer", minimum: 3 },
    valid: ["1"],
    invalid: ["1.5"],
  },
];

for (const { name, schema, valid, invalid } of cases) {
  test(`lets exactly the right JSON through: ${name}`, () => {
    const grammar = translate(schema);
    expect(valid.filter((text) => !accepts(grammar, text))).toEqual([]);
    expect(invalid.filter((text) => accepts(grammar, text))).toEqual([]);
  });
}

test("json_object means an object", () => {
  expect(accepts(anyObjectGrammar(), '{"a": [1, "b", {"c": null}]}')).toBe(true);
  expect(accepts(anyObjectGrammar(), "[1]")).toBe(false);
});

test("refuses what cannot be enforced and names it", () => {
  const wrap = (inner: unknown) => ({ type: "object", properties: { age: inner } });
  expect(() => translate(wrap({ not: {} }))).toThrow("schema.properties.age.not");
  expect(() => translate(wrap({ type: "integer", minimum: 3 }), true)).toThrow("schema.properties.age.minimum");
  expect(() => translate(wrap({ type: "text" }))).toThrow("schema.properties.age.type must be one of");
  expect(() => translate({ $ref: "https://example.com/x" })).toThrow("does not point into the schema");
  expect(() => translate({ anyOf: [{ $ref: "#" }] })).toThrow("only refers to itself");
  expect(() => translate({ type: "string", minLength: 5000 })).toThrow("schema.minLength must be at most 1000");
});

test("takes the limits of safe integers, which schema libraries write by themselves, even when strict", () => {
  const limits = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
  expect(accepts(translate({ type: "integer", ...limits }, true), "7")).toBe(true);
});

test("a wide object stays a small grammar", () => {
  const names = Array.from({ length: 800 }, (_, index) => `p${index}`);
  const grammar = translate({ type: "object", properties: Object.fromEntries(names.map((name) => [name, true])) });
  expect(grammar.length).toBeLessThan(100_000);
  expect(accepts(grammar, '{"p3": 1, "p799": 2}')).toBe(true);
});
