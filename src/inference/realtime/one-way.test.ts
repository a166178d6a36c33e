import { expect, test } from "bun:test";
import type { PausableLink } from "../../base/bytes/message-link.ts";
import { maxBufferedBytes, OneWay } from "./one-way.ts";

/** A sender's link that notes when it is paused. */
class Sender implements PausableLink {
  readonly peer = "test";
  readonly unsentBytes = 0;
  paused = false;

  send(): void {}
  close(): void {}
  terminate(): void {}

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }
}

function oneWay() {
  const from = new Sender();
  const taken: number[] = [];
  const state = { room: true, waits: undefined as Promise<void> | undefined };
  const way = new OneWay({
    from: () => from,
    hasRoom: () => state.room,
    take: ([first = 0]) => {
      taken.push(first);
      return state.waits;
    },
  });
  return { from, taken, state, way };
}

test("handles messages in order, each after the previous one is done", async () => {
  const { taken, state, way } = oneWay();
  const { promise, resolve } = Promise.withResolvers<void>();
  state.waits = promise;
  way.add(Uint8Array.of(1));
  state.waits = undefined;
  way.add(Uint8Array.of(2));
  way.add(Uint8Array.of(3));
  expect(taken).toEqual([1]);
  resolve();
  await promise;
  await Promise.resolve();
  expect(taken).toEqual([1, 2, 3]);
});

test("pauses the sender while there is no receiver, and resumes it once there is room", () => {
  const { from, taken, state, way } = oneWay();
  state.room = false;
  way.add(new Uint8Array(10));
  expect([from.paused, taken.length]).toEqual([true, 0]);
  state.room = true;
  way.goOn();
  expect([from.paused, taken.length]).toEqual([false, 1]);
});

test("pauses a sender that is faster than the handler", async () => {
  const { from, state, way } = oneWay();
  const { promise, resolve } = Promise.withResolvers<void>();
  state.waits = promise;
  way.add(new Uint8Array(1));
  state.waits = undefined;
  way.add(new Uint8Array(maxBufferedBytes));
  expect(from.paused).toBe(false);
  way.add(new Uint8Array(1));
  expect(from.paused).toBe(true);
  resolve();
  await promise;
  await Promise.resolve();
  expect(from.paused).toBe(false);
});

test("handles no message after it is stopped", () => {
  const { taken, state, way } = oneWay();
  state.room = false;
  way.add(Uint8Array.of(1));
  way.stop();
  state.room = true;
  way.goOn();
  way.add(Uint8Array.of(2));
  expect(taken).toEqual([]);
});
