// The delay of the event loop: measured for a minute, forgotten after it.
import { afterEach, expect, test } from "bun:test";
import { EventLoopDelay } from "./event-loop-delay.ts";

let delay: EventLoopDelay | undefined;
afterEach(() => delay?.close());

/** Samples at these distances in time. */
function sampled(...gapsMs: number[]): EventLoopDelay {
  let nowMs = 1_000;
  delay?.close();
  delay = new EventLoopDelay(() => nowMs);
  for (const gapMs of gapsMs) {
    nowMs += gapMs;
    delay.sample();
  }
  return delay;
}

test("reports no delay before the first sample", () => {
  expect(sampled().figures()).toEqual({ meanMs: 0, maxMs: 0 });
});

test("measures how late a timer is, and nothing for an early one", () => {
  expect(sampled(100, 400, 90, 110).figures()).toEqual({ meanMs: 77.5, maxMs: 300 });
});

test("forgets a delay after about a minute", () => {
  const quiet = (seconds: number) => new Array<number>(seconds * 10).fill(100);
  expect(sampled(5_100, ...quiet(55)).figures().maxMs).toBe(5_000);
  expect(sampled(5_100, ...quiet(75)).figures()).toEqual({ meanMs: 0, maxMs: 0 });
});

test("measures work that blocks the event loop", async () => {
  delay = new EventLoopDelay();
  const until = performance.now() + 300;
  while (performance.now() < until);
  while (delay.figures().maxMs < 150) await Bun.sleep(5);
});
