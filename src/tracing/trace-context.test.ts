// What is no trace context is none, whatever it is; what is one is read and passed on as the standard says.
import { expect, test } from "bun:test";
import { readClientTrace, traceparentOf } from "./trace-context.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const read = (traceparent: string | null, tracestate: string | null = null) =>
  readClientTrace({ get: (name) => (name === "traceparent" ? traceparent : tracestate) });

test.each([
  [`00-${traceId}-${spanId}-01`, true],
  [`00-${traceId}-${spanId}-00`, false],
  // Other flags, and a later version with more behind it, are to be borne (3.2.2.5, 4.3).
  [`00-${traceId}-${spanId}-ff`, true],
  [`00-${traceId}-${spanId}-02`, false],
  [`01-${traceId}-${spanId}-01-what-comes-later`, true],
])("accepts %s as a trace context, sampled: %p", (text, sampled) => {
  expect(read(text)).toEqual({ traceId, spanId, sampled, tracestate: undefined });
});

test.each([
  null,
  "",
  `00-${traceId}-${spanId}`,
  `00-${traceId}-${spanId}-1`,
  `00-${traceId}-${spanId}-01-more`,
  `00-${traceId}-${spanId}-01 `,
  `ff-${traceId}-${spanId}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${"0".repeat(32)}-${spanId}-01`,
  `00-${traceId}-${"0".repeat(16)}-01`,
  `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
  `00-${traceId}-${spanId}-01\r\nx: y`,
  "0".repeat(100_000),
])("rejects %j as a trace context", (text) => {
  expect(read(text)).toBeUndefined();
});

test.each([
  ["vendor=value", "vendor=value"],
  ["a=1 , b@c=2,, d/e=3", "a=1,b@c=2,d/e=3"],
  ["", undefined],
  ["novalue", undefined],
  ["UPPER=1", undefined],
  ["a=1,b", undefined],
  ["a=x=y", undefined],
  ["a=\u0001", undefined],
  ["a=1\r\nx: y", undefined],
  [`a=${"1".repeat(600)}`, undefined],
  [Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(","), undefined],
])("passes on the trace state %j as %j", (text, passed) => {
  expect(read(`00-${traceId}-${spanId}-01`, text)?.tracestate).toBe(passed);
});

test("writes a trace context that a reader accepts", () => {
  const text = traceparentOf({ traceId, spanId, traceFlags: 1 });
  expect(text).toBe(`00-${traceId}-${spanId}-01`);
  expect(read(text)?.sampled).toBe(true);
});
