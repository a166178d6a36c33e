// The clock stands still within one event, and goes on with the next.
import { expect, test } from "bun:test";
import { elapsedMs, monotonicMs, systemClock, wallMs } from "./clock.ts";

function work(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test("what is done in one go has one time; what is done later has its own", async () => {
  await Bun.sleep(0);
  const [mono, wall] = [monotonicMs(), wallMs()];
  expect(mono - performance.now()).toBeWithin(-5, 0.001);
  work(5);
  expect([monotonicMs(), systemClock.monotonicMs(), wallMs()]).toEqual([mono, mono, wall]);
  await null;
  expect(monotonicMs() - mono).toBeGreaterThanOrEqual(5);
  expect(wallMs() - wall).toBeGreaterThanOrEqual(4);
  expect(systemClock.nowSeconds()).toBe(Math.floor(wallMs() / 1000));
});

test("a time that was read in one event is not that of the next, whatever else waited", async () => {
  const times: number[] = [];
  await new Promise<void>((resolve) => {
    setImmediate(() => times.push(monotonicMs()));
    setImmediate(() => work(3));
    setImmediate(() => resolve(void times.push(monotonicMs())));
  });
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(3);
});

test("what took long within one event is timed, and time does not go back behind it", async () => {
  await Bun.sleep(0);
  const start = monotonicMs();
  work(5);
  const elapsed = elapsedMs(systemClock, start);
  expect(elapsed).toBeGreaterThanOrEqual(5);
  expect(monotonicMs()).toBe(start + elapsed);
  expect(elapsedMs({ monotonicMs: () => 7 }, 7)).toBe(0);
});
