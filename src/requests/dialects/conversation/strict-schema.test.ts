// Tests the schemas that OpenAI takes and Anthropic refuses, and the reverse.
import { describe, expect, test } from "bun:test";
import { closedSchema, fitsStrict } from "./strict-schema.ts";

const text = { type: "string" };
const closed = { additionalProperties: false };
const object = { type: "object", properties: { a: text }, required: ["a"], ...closed };

describe("a schema for OpenAI's strict mode", () => {
  test.each([
    ["an object that requires all properties", object],
    ["an object without properties", { type: "object", ...closed }],
    ["a list of such objects", { type: "array", items: object }],
    ["an object with the property names of a schema", { ...object, properties: { a: { enum: ["required"] } } }],
  ])("fits OpenAI's strict mode with %s", (_, schema) => {
    expect(fitsStrict(schema)).toBe(true);
  });

  const optional = { ...object, required: [] };
  test.each([
    ["an optional property", optional],
    ["an open object", { type: "object", properties: {}, required: [] }],
    ["an optional property in a property", { ...object, properties: { a: optional } }],
    ["an optional property in a list", { ...object, properties: { a: { type: "array", items: optional } } }],
    ["an optional property in an alternative", { ...object, properties: { a: { anyOf: [text, optional] } } }],
    ["schemas that all hold", { ...object, properties: { a: { allOf: [text] } } }],
    ["schemas of which one holds", { ...object, properties: { a: { oneOf: [text, { type: "null" }] } } }],
    ["an optional property in a definition", { ...object, $defs: { b: optional } }],
  ])("does not fit OpenAI's strict mode with %s", (_, schema) => {
    expect(fitsStrict(schema)).toBe(false);
  });
});

describe("a schema for Anthropic", () => {
  test("closes each object with properties", () => {
    const open = { type: "object", properties: { a: text }, additionalProperties: true };
    const list = { type: "object", properties: { b: { type: "array", items: open } }, $defs: { c: open } };
    expect(closedSchema(list)).toEqual({
      ...{ type: "object", ...closed, $defs: { c: { ...open, ...closed } } },
      properties: { b: { type: "array", items: { ...open, ...closed } } },
    });
  });

  test("keeps a map of free names, which would be empty once closed", () => {
    const map = { type: "object", additionalProperties: text };
    expect(closedSchema(map)).toEqual(map);
  });

  test("moves constraints that Anthropic refuses into the description", () => {
    expect(closedSchema({ type: "integer", minimum: 1, maximum: 5, description: "Stars" })).toEqual({
      type: "integer",
      description: "Stars\n\n(minimum: 1, maximum: 5)",
    });
    expect(closedSchema({ type: "array", items: text, minItems: 2 })).toEqual({
      ...{ type: "array", items: text },
      description: "(minItems: 2)",
    });
    expect(closedSchema({ type: "array", items: text, minItems: 1 })).toEqual({
      type: "array",
      items: text,
      minItems: 1,
    });
  });

  test("keeps properties whose names are those of constraints", () => {
    const schema = { type: "object", properties: { minimum: { type: "number" } }, ...closed };
    expect(closedSchema(schema)).toEqual(schema);
  });
});
