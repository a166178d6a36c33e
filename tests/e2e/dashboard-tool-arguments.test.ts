// The form for a tool's arguments: which fields a schema makes, and what is sent of what was typed.
import { expect, test } from "bun:test";
import { argumentsOf, fieldsOf, initialOf, objectOf } from "../../web/pages/tools/argument-fields.ts";

const schema = {
  type: "object",
  properties: {
    query: { type: "string", description: "Words" },
    limit: { type: "integer", default: 10 },
    order: { enum: ["newest", "oldest"] },
    deep: { type: "boolean" },
    filters: { type: "object" },
    level: { enum: [1, 2] },
    anything: true,
  },
  required: ["query", "deep"],
};

function fieldsOfSchema() {
  const fields = fieldsOf(schema);
  if (!fields) throw new Error("The schema makes no form.");
  return fields;
}

test("shows a typed field for each simple property, and a JSON field for the others", () => {
  expect(fieldsOfSchema().map(({ name, kind }) => `${name}: ${kind}`)).toEqual([
    ...["query: text", "limit: number", "order: choice", "deep: switch"],
    ...["filters: json", "level: json", "anything: json"],
  ]);
  expect(initialOf(fieldsOfSchema())).toMatchObject({ query: "", limit: "10", filters: "" });
});

test("omits empty arguments unless the tool requires them, and converts values to schema types", () => {
  const typed = { ...initialOf(fieldsOfSchema()), query: "42", filters: '{"a": [1]}' };
  expect(argumentsOf(fieldsOfSchema(), typed)).toEqual({
    given: { query: "42", limit: 10, deep: false, filters: { a: [1] } },
  });
  expect(argumentsOf(fieldsOfSchema(), {})).toEqual({ problems: new Map([["query", "This argument is required."]]) });
});

test.each([
  ["limit", "ten", "Enter a number"],
  ["limit", "1.5", "whole number"],
  ["limit", "Infinity", "Enter a number"],
  ["filters", "{a: 1}", "not valid JSON"],
])("refuses arguments of %s, with the value %j, and says why", (field, text, why) => {
  const read = argumentsOf(fieldsOfSchema(), { query: "water", [field]: text });
  expect("problems" in read && read.problems.get(field)).toContain(why);
});

test.each([
  undefined,
  true,
  { type: "object", anyOf: [{}] },
  { type: "object", properties: [] },
  { properties: Object.fromEntries(Array.from({ length: 41 }, (_, i) => [`p${i}`, {}])) },
])("shows one JSON text for a schema that fits no form of usable size: %#", (strange) => {
  expect(fieldsOf(strange)).toBeUndefined();
  expect(objectOf("")).toEqual({ given: {} });
  expect(objectOf('{"a": 1}')).toEqual({ given: { a: 1 } });
  expect(objectOf("[1]")).toHaveProperty("problem");
  expect(objectOf("{")).toHaveProperty("problem");
});

test("accepts tool arguments named like members that every object has", () => {
  const named = fieldsOf(
    JSON.parse('{"properties": {"__proto__": {"type": "string"}, "constructor": {"type": "string"}}}'),
  );
  const typed = JSON.parse('{"__proto__": "a", "constructor": "b"}');
  const read = argumentsOf(named ?? [], typed);
  expect(JSON.stringify(read)).toBe('{"given":{"__proto__":"a","constructor":"b"}}');
});
