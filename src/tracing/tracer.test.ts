// Which requests are traced: never more of them than the share and the bound allow, whatever clients wish.
import { expect, test } from "bun:test";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { joinedPerSecond, SamplingTracer } from "./tracer.ts";

const parent = (flags: string) => `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-${flags}`;

function sampling(sample: number) {
  let now = 0;
  const draws: number[] = [];
  const tracer = new SamplingTracer({
    tracer: new TracerProvider().getTracer("test"),
    sample,
    content: false,
    draw: () => draws.shift() ?? 0.5,
    nowMs: () => now,
  });
  const begin = (traceparent: string | null) =>
    tracer.begin({
      ...{ requestId: "req_1", method: "GET", route: "/", keyId: "key_1", actorId: "key_1", ageMs: 0 },
      headers: { get: (name) => (name === "traceparent" ? traceparent : null) },
    }) !== undefined;
  const count = (traceparent: string | null, times: number) =>
    Array.from({ length: times }, () => begin(traceparent)).filter(Boolean).length;
  const pass = (ms: number) => {
    now += ms;
  };
  return { begin, count, pass, draws };
}

test("samples a share of the requests without a trace, and none for a share of 0", () => {
  const { begin, draws } = sampling(0.5);
  draws.push(0.49, 0.5);
  expect([begin(null), begin(null)]).toEqual([true, false]);
  expect(sampling(0).count(null, 100)).toBe(0);
  expect(sampling(1).count(null, 100)).toBe(100);
});

test("starts no trace for a client that does not sample its own", () => {
  expect(sampling(1).count(parent("00"), 100)).toBe(0);
});

test("follows clients' sampled traces up to a burst, then a number per second", () => {
  const { count, pass } = sampling(0);
  expect(count(parent("01"), 1_000)).toBe(50);
  pass(2_000);
  expect(count(parent("01"), 1_000)).toBe(2 * joinedPerSecond);
  pass(3_600_000);
  expect(count(parent("01"), 1_000)).toBe(50);
});

test("treats an invalid trace context as none", () => {
  expect(sampling(0).count("garbage", 10)).toBe(0);
  expect(sampling(1).count("garbage", 10)).toBe(10);
});
