// One text of metrics for several processes.
import { expect, test } from "bun:test";
import { Exposition, type ExpositionFormat, labelText } from "./exposition.ts";
import { countersOf, sampleIn, summed } from "./summed.ts";

function textOf(format: ExpositionFormat, requests: Record<string, number>, open: number, own?: string): string {
  const out = new Exposition(format);
  out.family("headrace_requests_total", "counter", "Requests.");
  for (const model in requests) out.sample(labelText({ model }), requests[model] ?? 0);
  out.gauge("headrace_open", "Open ones.", open);
  if (own) out.gauge(own, "One's own.", 1);
  return out.end();
}

for (const format of ["prometheus", "openmetrics"] as const) {
  test(`adds samples of equal labels, and keeps those of a single process (${format})`, () => {
    const sum = summed(textOf(format, { a: 1, 'b "c" d': 2 }, 3), [
      textOf("prometheus", { a: 10, z: 5 }, 4),
      textOf("prometheus", { 'b "c" d': 0.5 }, 0, "headrace_new"),
    ]);
    const wanted = new Exposition(format);
    wanted.family("headrace_requests_total", "counter", "Requests.");
    for (const [model, count] of [
      ["a", 11],
      ['b "c" d', 2.5],
      ["z", 5],
    ] as const)
      wanted.sample(labelText({ model }), count);
    wanted.gauge("headrace_open", "Open ones.", 7);
    wanted.gauge("headrace_new", "One's own.", 1);
    expect(sum).toBe(wanted.end());
  });
}

test("keeps counters of an ended process, and none of its gauges", () => {
  const text = textOf("prometheus", { a: 1, b: 2 }, 7);
  expect(summed(textOf("prometheus", { a: 1 }, 3), [countersOf(text)])).toBe(textOf("prometheus", { a: 2, b: 2 }, 3));
  expect(summed("", [countersOf(text)])).toBe(countersOf(text));
});

test("returns the text of a single process unchanged", () => {
  const text = textOf("openmetrics", { a: 1 }, 0);
  expect(summed(text, [])).toBe(text);
});

test("reads a value by its whole name, and 0 without one", () => {
  const text = textOf("prometheus", { a: 1 }, 7, "headrace_open_more");
  expect([sampleIn(text, "headrace_open"), sampleIn(text, "headrace_ope"), sampleIn("", "headrace_open")]).toEqual([
    7, 0, 0,
  ]);
});
