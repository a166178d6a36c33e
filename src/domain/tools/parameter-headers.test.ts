// Arguments mirrored in headers: which are sent, how they are encoded, and which headers contradict them.
import { describe, expect, test } from "bun:test";
import { mirroredParameters, parameterFault, parameterHeaders } from "./parameter-headers.ts";

const region = { type: "string", "x-mcp-header": "Region" };
const of = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
const mirrored = mirroredParameters(
  of({
    region,
    deep: of({
      count: { type: "integer", "x-mcp-header": "Count" },
      sure: { type: "boolean", "x-mcp-header": "Sure" },
    }),
  }),
);
const headersOf = (args: unknown) => parameterHeaders(mirrored ?? [], args);
const faultOf = (args: unknown, headers: Record<string, string>) =>
  parameterFault(mirrored ?? [], args, new Headers(headers));

test("finds header annotations at any depth of properties, and none in a schema without any", () => {
  expect(mirrored?.map(({ header, path }) => `${header} ${path.join(".")}`)).toEqual([
    "Mcp-Param-Region region",
    "Mcp-Param-Count deep.count",
    "Mcp-Param-Sure deep.sure",
  ]);
  expect(mirroredParameters(of({ region: { type: "string" } }))).toEqual([]);
  expect(mirroredParameters(undefined)).toEqual([]);
  expect(mirroredParameters(of({ a: { type: "object", default: { "x-mcp-header": "A" } } }))).toEqual([]);
});

test.each([
  ["on the arguments themselves", { ...of({}), type: "string", "x-mcp-header": "All" }],
  ["on items of a list", of({ list: { type: "array", items: region } })],
  ["in a choice", of({}, { anyOf: [of({ region })] })],
  ["in what is defined elsewhere", of({}, { $defs: { one: region } })],
  ["below what is no one place", of({ list: { type: "array", items: of({ region }) } })],
  ["on an object", of({ a: { type: "object", "x-mcp-header": "A" } })],
  ["without a type", of({ a: { "x-mcp-header": "A" } })],
  ["with an empty name", of({ a: { type: "string", "x-mcp-header": "" } })],
  ["with a line in its name", of({ a: { type: "string", "x-mcp-header": "A\r\nB" } })],
  ["with a name that is no text", of({ a: { type: "string", "x-mcp-header": 1 } })],
  ["twice, but for case", of({ a: region, b: { type: "string", "x-mcp-header": "REGION" } })],
])("rejects an annotation %s", (_, schema) => {
  expect(mirroredParameters(schema)).toBeUndefined();
});

test.each([
  ["us-west1", "us-west1"],
  ["with a space", "with a space"],
  [" at its ends ", "=?base64?IGF0IGl0cyBlbmRzIA==?="],
  ["Zürich", "=?base64?WsO8cmljaA==?="],
  ["two\nlines", "=?base64?dHdvCmxpbmVz?="],
  ["", "=?base64??="],
  ["=?base64?SGVsbG8=?=", "=?base64?PT9iYXNlNjQ/U0dWc2JHOD0/PQ==?="],
])("writes %j as %s, and reads it back", (text, written) => {
  expect(headersOf({ region: text })).toEqual({ "Mcp-Param-Region": written });
  expect(faultOf({ region: text }, { "Mcp-Param-Region": written })).toBeUndefined();
});

test("writes numbers and booleans plainly, and omits null, absent, inherited or invalid values", () => {
  expect(headersOf({ deep: { count: 42, sure: false } })).toEqual({
    "Mcp-Param-Count": "42",
    "Mcp-Param-Sure": "false",
  });
  expect(headersOf({ region: null, deep: { count: 2 ** 60, sure: {} } })).toEqual({});
  expect(headersOf({ deep: [] })).toEqual({});
  expect(headersOf("constructor")).toEqual({});
});

test("rejects a schema that is too deep to read", () => {
  let schema: object = of({ region });
  for (let depth = 0; depth < 100_000; depth++) schema = { not: schema };
  expect(mirroredParameters(schema)).toBeUndefined();
});

describe("requests whose headers contradict their parameters", () => {
  test.each([
    ["that leaves a header out", {}, "Mcp-Param-Region is missing"],
    ["whose header says something else", { "Mcp-Param-Region": "us-east1" }, "something else"],
    ["whose header is half a Base64", { "Mcp-Param-Region": "=?base64?dXM?=" }, "Base64"],
    ["whose header has bytes that are no text", { "Mcp-Param-Region": "=?base64?/w==?=" }, "Base64"],
  ])("refuses a request %s", (_, headers, fault) => {
    expect(faultOf({ region: "us" }, headers)).toContain(fault);
  });

  test("accepts a number in other digits, and an unexpected header", () => {
    expect(faultOf({ deep: { count: 42 } }, { "Mcp-Param-Count": "42.0" })).toBeUndefined();
    expect(faultOf({ deep: { count: 42 } }, { "Mcp-Param-Count": "0x2a" })).toContain("something else");
    expect(faultOf({}, { "Mcp-Param-Region": "us" })).toBeUndefined();
  });
});
