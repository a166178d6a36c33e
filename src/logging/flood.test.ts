// One event repeated without end is written a bounded number of times, and the rest is told of as a number.
import { expect, test } from "bun:test";
import { FloodControl } from "./flood.ts";

function control(most = 3) {
  let now = 0;
  const received: [string, number, number][] = [];
  const flood = new FloodControl({
    most,
    windowMs: 60_000,
    nowMs: () => now,
    suppressed: (event, times, seconds) => void received.push([event, times, seconds]),
  });
  const count = (event: string, times: number) =>
    Array.from({ length: times }, () => flood.admits(event)).filter(Boolean).length;
  const pass = (ms: number) => {
    now += ms;
  };
  return { flood, received, count, pass };
}

test("writes a bounded number of lines of one event each minute, without holding back others", () => {
  const { received, count, pass, flood } = control();
  expect([count("a", 1_000), count("b", 2)]).toEqual([3, 2]);
  pass(59_999);
  expect([count("a", 1), count("b", 2)]).toEqual([0, 1]);
  expect(received).toEqual([]);
  pass(1);
  expect(count("a", 5)).toBe(3);
  expect(received).toEqual([["a", 998, 60]]);
  flood.flush();
  expect(received.slice(1)).toEqual([
    ["a", 2, 60],
    ["b", 1, 60],
  ]);
});

test("reports suppressed lines once, and nothing without any", () => {
  const { received, count, flood } = control();
  count("a", 4);
  flood.flush();
  flood.flush();
  expect(received).toEqual([["a", 1, 60]]);
  count("b", 3);
  flood.flush();
  expect(received).toHaveLength(1);
});
