// Tool schemas in the form that strict model servers accept.
import { expect, test } from "bun:test";
import { toolSchema } from "./tool-schema.ts";

const empty = { type: "object", properties: {} };
const closed = { ...empty, required: [], additionalProperties: false };

test.each<[unknown, object]>([
  [undefined, empty],
  [null, empty],
  [[], empty],
  ["object", empty],
  [{}, empty],
  [{ type: "object" }, empty],
  [{ type: null, properties: null, required: null }, empty],
  [{ type: "object", properties: [] }, empty],
  [{ properties: { a: { type: "string" } } }, { type: "object", properties: { a: { type: "string" } } }],
  [
    { type: ["object", "null"], title: "T" },
    { ...empty, title: "T" },
  ],
  [
    { type: "object", additionalProperties: true },
    { ...empty, additionalProperties: true },
  ],
  [
    { type: "object", default: null, description: null },
    { ...empty, default: null },
  ],
  [
    { type: "object", properties: { a: { type: "array" }, b: { anyOf: [{ type: ["array", "null"], items: null }] } } },
    {
      type: "object",
      properties: { a: { type: "array", items: {} }, b: { anyOf: [{ type: ["array", "null"], items: {} }] } },
    },
  ],
  [
    { type: "object", properties: { a: { type: "array", items: { type: "array" } } }, $defs: { d: { type: "array" } } },
    {
      type: "object",
      properties: { a: { type: "array", items: { type: "array", items: {} } } },
      $defs: { d: { type: "array", items: {} } },
    },
  ],
  [{ type: "string" }, { type: "string" }],
])("writes the arguments %j as an object with properties", (given, wanted) => {
  expect(toolSchema(given)).toEqual(wanted as never);
});

test("closes the schema of a strict tool that names no arguments", () => {
  for (const given of [undefined, {}, { type: "object" }, { type: "object", properties: null }]) {
    expect(toolSchema(given, true)).toEqual(closed);
  }
  const own = { type: "object", properties: { a: {} } };
  expect(toolSchema(own, true)).toBe(own);
});

test("keeps a whole schema as the same object, whatever is in it", () => {
  const whole = {
    ...{
      type: "object",
      required: ["a"],
      $schema: "x",
      properties: { type: { const: null }, a: { type: "array", items: {} } },
    },
    ...{ prefix: { type: "array", prefixItems: [] } },
  };
  expect(toolSchema(whole)).toBe(whole);
});

test("leaves schemas alone that are nested too deeply", () => {
  let deep: Record<string, unknown> = { type: "array" };
  for (let i = 0; i < 50_000; i++) deep = { type: "object", properties: { deep } };
  expect(() => toolSchema(deep)).not.toThrow();
});
