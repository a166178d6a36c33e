import { beforeAll, expect, test } from "bun:test";
import * as library from "node-llama-cpp";
import { withinMs } from "../../../../../tests/support/long.ts";
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

/** Asks llama.cpp whether the grammar accepts the whole text. */
function accepts(grammar: string, text: string): boolean {
  const compiled = new library.LlamaGrammar(llama, { grammar });
  // The library's types lack this method.
  if (!("_testText" in compiled) || typeof compiled._testText !== "function") throw new Error("It tries no text.");
  return compiled._testText(text);
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
    name: "additional properties never take the name of another",
    schema: {
      type: "object",
      properties: { ab: { type: "integer" }, "a-]": { type: "null" }, 'é"': { type: "null" }, ["x".repeat(150)]: true },
      additionalProperties: { type: "string" },
    },
    valid: ['{"ab":1,"a":"","abc":"","a-":"","b\\"":"","":""}', '{"é":""}', '{"xx":"","xy":""}', '{"ad\\u0061":""}'],
    invalid: [
      '{"ab":1,"ab":"x"}',
      '{"ab":"x"}',
      '{"a-]":""}',
      '{"a\\u0062":"x"}',
      '{"é\\"":""}',
      `{"${"x".repeat(150)}z":""}`,
    ],
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
    name: "one property in two parts of allOf",
    schema: {
      allOf: [{ properties: { a: { type: "string" } }, required: ["a"] }, { properties: { a: { minLength: 2 } } }],
    },
    valid: ['{"a":"xy"}'],
    invalid: ['{"a":"x"}', '{"a":12}', "{}"],
  },
  {
    name: "allOf beside properties and required",
    schema: {
      type: "object",
      properties: { a: { type: "integer" } },
      required: ["a", "b"],
      allOf: [{ $ref: "#/$defs/base" }],
      $defs: { base: { type: "object", properties: { b: { type: "null" } } } },
    },
    valid: ['{"b":null,"a":1}'],
    invalid: ['{"a":1}', '{"b":null}', '{"b":1,"a":1}'],
  },
  {
    name: "alternatives beside properties and required",
    schema: {
      type: "object",
      properties: { kind: { type: "string" }, a: { type: "integer" }, b: { type: "integer" } },
      required: ["kind"],
      additionalProperties: false,
      anyOf: [{ required: ["a"] }, { properties: { kind: { const: "k" } }, required: ["b"] }],
    },
    valid: ['{"kind":"x","a":1}', '{"kind":"k","b":1}'],
    invalid: ["{}", '{"kind":"x"}', '{"a":1}', '{"kind":"x","b":1}'],
  },
  {
    name: "type beside references in oneOf",
    schema: {
      type: "object",
      oneOf: [{ $ref: "#/$defs/x" }],
      $defs: { x: { properties: { a: { type: "null" } }, required: ["a"] } },
    },
    valid: ['{"a":null}'],
    invalid: ["{}", "null"],
  },
  {
    name: "required names that properties lacks are members of any value",
    schema: { type: "object", properties: { a: { type: "null" } }, required: ["a", "b"] },
    valid: ['{"a":null,"b":[1]}'],
    invalid: ['{"a":null}', '{"b":1}'],
  },
  {
    name: "required alone",
    schema: { required: ["b"] },
    valid: ['{"b":1}', '{"b":1,"c":2}'],
    invalid: ["{}", "1"],
  },
  {
    name: "references through arrays, with annotations beside them",
    schema: {
      type: "object",
      properties: {
        a: { anyOf: [{ type: "integer" }, { type: "null" }] },
        b: { title: "B", $ref: "#/properties/a/anyOf/0", default: 1 },
      },
      required: ["b"],
    },
    valid: ['{"b":1}', '{"b":1,"a":null}'],
    invalid: ['{"b":null}'],
  },
  {
    name: "enum and const of the type that stands beside them",
    schema: { type: ["string", "integer"], enum: ["a", 1, 1.5, null] },
    valid: ['"a"', "1"],
    invalid: ["1.5", "null"],
  },
  {
    name: "type as a list with duplicates",
    schema: { type: ["null", "integer", "null"] },
    valid: ["1", "null"],
    invalid: ['"a"', "1.5"],
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
  test(`accepts exactly the matching JSON by its grammar: ${name}`, () => {
    const grammar = translate(schema);
    expect(valid.filter((text) => !accepts(grammar, text))).toEqual([]);
    expect(invalid.filter((text) => accepts(grammar, text))).toEqual([]);
  });
}

test("treats json_object as an object", () => {
  expect(accepts(anyObjectGrammar(), '{"a": [1, "b", {"c": null}]}')).toBe(true);
  expect(accepts(anyObjectGrammar(), "[1]")).toBe(false);
});

test("refuses a schema that cannot be enforced, and names the cause", () => {
  const wrap = (inner: unknown) => ({ type: "object", properties: { age: inner } });
  expect(() => translate(wrap({ not: {} }))).toThrow("schema.properties.age.not");
  expect(() => translate(wrap({ type: "integer", minimum: 3 }), true)).toThrow("schema.properties.age.minimum");
  expect(() => translate(wrap({ type: "text" }))).toThrow("schema.properties.age.type must be one of");
  expect(() => translate({ $ref: "https://example.com/x" })).toThrow("does not point into the schema");
  expect(() => translate({ anyOf: [{ $ref: "#" }] })).toThrow("only refers to itself");
  expect(() => translate({ type: "string", minLength: 5000 })).toThrow("schema.minLength must be at most 1000");
});

const contradictions: [name: string, schema: object, message: string][] = [
  ["an anchor", { $ref: "#foo" }, 'schema.$ref "#foo" does not point into the schema'],
  ["a torn escape", { $ref: "#/$defs/100%" }, 'schema.$ref "#/$defs/100%" does not point into the schema'],
  [
    "an index that is not there",
    { $ref: "#/anyOf/01", anyOf: [{}, {}] },
    "schema.anyOf cannot be enforced beside $ref",
  ],
  ["a reference that is no text", { $ref: 1 }, "schema.$ref must be a string"],
  ["a constraint beside $ref", { $ref: "#/$defs/a", required: ["x"], $defs: { a: {} } }, "schema.required cannot be"],
  ["a constraint beside enum", { enum: ["a"], minLength: 2 }, "schema.minLength cannot be enforced beside enum"],
  ["enum without a value of the type", { type: "object", enum: ["a"] }, "schema.enum holds no value of the type"],
  ["types that exclude each other", { allOf: [{ type: "null" }, { type: "string" }] }, "schema.allOf.type: no value"],
  ["items twice", { allOf: [{ items: { type: "null" } }, { items: {} }] }, 'schema.allOf: "items" here'],
  ["items apart from prefixItems", { allOf: [{ items: {} }, { prefixItems: [{}] }] }, 'schema.allOf: "prefixItems"'],
  [
    "closed parts",
    { allOf: [{ properties: { a: {} }, additionalProperties: false }, { properties: { b: {} } }] },
    'schema.allOf: "additionalProperties" here',
  ],
  ["two lists of alternatives", { allOf: [{ anyOf: [{}] }, { anyOf: [{}] }] }, 'schema.allOf: "anyOf" here'],
  ["too few items", { prefixItems: [{}], items: false, minItems: 2 }, "schema.minItems must not be more"],
  ["a forbidden member", { required: ["a"], additionalProperties: false }, 'schema.required names "a"'],
  ["required as a flag", { type: "object", required: true }, "schema.required must be an array of strings"],
  [
    "a length beside a format",
    { type: "string", format: "date", minLength: 11 },
    "schema.minLength cannot be enforced",
  ],
  ["unevaluatedProperties", { unevaluatedProperties: false }, "schema.unevaluatedProperties: this keyword"],
  ["too many types", { type: Array(8).fill("null") }, "schema.type must be one of"],
];

for (const [name, schema, message] of contradictions) {
  test(`refuses a schema that it cannot enforce by name: ${name}`, () => {
    expect(() => translate(schema)).toThrow(message);
  });
}

const nested = (levels: number, wrap: (inner: object) => object): object =>
  levels === 0 ? { type: "null" } : wrap(nested(levels - 1, wrap));
const doubled = { allOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }] };
const entangled: [name: string, schema: object][] = [
  ["types repeated at every level", nested(6, (a) => ({ type: Array(30).fill("object"), properties: { a } }))],
  ["alternatives of alternatives", nested(12, (a) => ({ minLength: 1, anyOf: [a, a, a, a], oneOf: [a] }))],
  ["parts that double themselves", { ...doubled, $defs: { a: doubled } }],
  [
    "a wide base under many alternatives",
    { properties: Object.fromEntries(Array.from({ length: 4000 }, (_, i) => [i, {}])), anyOf: Array(4000).fill({}) },
  ],
  [
    "a long literal under many alternatives",
    { properties: { a: { const: "x".repeat(1e6) } }, anyOf: Array(4000).fill({}) },
  ],
];

for (const [name, schema] of entangled) {
  test(`refuses a schema that would need endless work within 100 ms: ${name}`, () => {
    const started = performance.now();
    expect(() => translate(schema)).toThrow(/^schema/);
    expect(performance.now() - started).toBeLessThan(withinMs(100));
  });
}

test("accepts the safe-integer limits that schema libraries add, even in strict mode", () => {
  const limits = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
  expect(accepts(translate({ type: "integer", ...limits }, true), "7")).toBe(true);
});

test("compiles a wide object to a small grammar", () => {
  const names = Array.from({ length: 800 }, (_, index) => `p${index}`);
  const grammar = translate({ type: "object", properties: Object.fromEntries(names.map((name) => [name, true])) });
  expect(grammar.length).toBeLessThan(100_000);
  expect(accepts(grammar, '{"p3": 1, "p799": 2}')).toBe(true);
});
