// Spans wait in a bounded queue: what finds no room, and what the collector does not take, is counted and told of.
import { expect, test } from "bun:test";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { LogFields } from "../base/log.ts";
import { defaultBounds, SpanExport } from "./export.ts";

type Result = Parameters<SpanExporter["export"]>[1];

function exporting(bounds: Partial<typeof defaultBounds> = {}) {
  const batches: { spans: ReadableSpan[]; done: Result }[] = [];
  const received: LogFields[] = [];
  const log = { info() {}, error() {}, warn: (_: string, fields: LogFields = {}) => void received.push(fields) };
  const exporter = {
    export: (spans: ReadableSpan[], done: Result) => void batches.push({ spans, done }),
    shutdown: async () => {},
  };
  const spans = new SpanExport(exporter, log, { ...defaultBounds, delayMs: 60_000, ...bounds });
  const add = (count: number) => {
    for (let i = 0; i < count; i++) spans.onEnd({} as ReadableSpan);
  };
  return { spans, batches, received, add };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

test("sends one batch at a time, each after the previous one was accepted", async () => {
  const { batches, add } = exporting({ batchSize: 10 });
  add(9);
  expect(batches).toHaveLength(0);
  add(16);
  expect(batches.map((batch) => batch.spans.length)).toEqual([10]);
  batches[0]?.done({ code: 0 });
  await settled();
  expect(batches.map((batch) => batch.spans.length)).toEqual([10, 10]);
});

test("drops spans beyond the bound, counts them, and logs that at most once a minute", () => {
  const { spans, received, add } = exporting({ batchSize: 10, maxWaiting: 20 });
  add(1_030);
  expect(spans.dropped).toBe(1_000);
  expect(received).toEqual([{ spans: 1, detail: "too many are waiting" }]);
});

test("drops a batch that is refused or times out, and sends the next one", async () => {
  const { spans, batches, received, add } = exporting({ batchSize: 10, deadlineMs: 5, reportEveryMs: 0 });
  add(10);
  batches[0]?.done({ code: 1, error: new Error("no such tenant") });
  await settled();
  expect(received).toEqual([{ spans: 10, detail: "no such tenant" }]);
  add(20);
  while (batches.length < 3) await settled();
  expect(spans.dropped).toBe(20);
  expect(received[1]).toMatchObject({ spans: 10, detail: "no answer within 0.005 s" });
  // Too late to count.
  batches[1]?.done({ code: 0 });
  expect(spans.dropped).toBe(20);
});

test("sends the rest at shutdown, and drops and reports what is not accepted in time", async () => {
  const quick = exporting();
  quick.add(3);
  const over = quick.spans.shutdown();
  quick.batches[0]?.done({ code: 0 });
  await over;
  expect([quick.spans.dropped, quick.batches[0]?.spans.length]).toEqual([0, 3]);
  quick.add(1);
  expect(quick.spans.dropped).toBe(1);

  const hanging = exporting({ batchSize: 10, farewellMs: 5 });
  hanging.add(25);
  await hanging.spans.shutdown();
  expect(hanging.spans.dropped).toBe(25);
  expect(hanging.received).toEqual([{ spans: 25, detail: "the collector took too long at the end" }]);
});

test("loses only one batch if an exporter throws", async () => {
  const received: LogFields[] = [];
  const log = { info() {}, error() {}, warn: (_: string, fields: LogFields = {}) => void received.push(fields) };
  const exporter = {
    export: () => {
      throw new Error("broken");
    },
    shutdown: async () => {},
  };
  const spans = new SpanExport(exporter, log, { ...defaultBounds, batchSize: 1 });
  spans.onEnd({} as ReadableSpan);
  await settled();
  expect(received).toEqual([{ spans: 1, detail: "broken" }]);
});
