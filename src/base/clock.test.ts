// The clock stands still within one event, and goes on with the next.
import { expect, test } from "bun:test";
import { duringEvent, elapsedMs, monotonicMs, systemClock, wallMs } from "./clock.ts";

function work(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test("returns one time within an event, and a new one later", async () => {
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

test("does not reuse the time of one event in the next", async () => {
  const times: number[] = [];
  await new Promise<void>((resolve) => {
    setImmediate(() => times.push(monotonicMs()));
    setImmediate(() => work(3));
    setImmediate(() => resolve(void times.push(monotonicMs())));
  });
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(3);
});

test("measures long work within an event, and does not go back afterwards", async () => {
  await Bun.sleep(0);
  const start = monotonicMs();
  work(5);
  const elapsed = elapsedMs(systemClock, start);
  expect(elapsed).toBeGreaterThanOrEqual(5);
  expect(monotonicMs()).toBe(start + elapsed);
  expect(elapsedMs({ monotonicMs: () => 7 }, 7)).toBe(0);
});

test("keeps one time from an event's beginning to its end, also if it fails", async () => {
  await Bun.sleep(0);
  const before = monotonicMs();
  work(3);
  const times: number[] = [];
  const take = (into: number[], ms: number) => {
    into.push(monotonicMs());
    work(ms);
    into.push(monotonicMs());
  };
  duringEvent(take, times, 3);
  const [first = 0, second = 0] = times;
  expect(first - before).toBeGreaterThanOrEqual(3);
  expect(second).toBe(first);
  expect(monotonicMs() - first).toBeGreaterThanOrEqual(3);
  const failing = () =>
    duringEvent(
      (into: number[], ms: number) => {
        take(into, ms);
        throw new Error("in the middle");
      },
      times,
      3,
    );
  expect(failing).toThrow("in the middle");
  const after = monotonicMs();
  expect(after - (times[2] ?? 0)).toBeGreaterThanOrEqual(3);
  work(3);
  expect(monotonicMs()).toBe(after);
  await null;
  expect(monotonicMs() - after).toBeGreaterThanOrEqual(3);
});
