import { expect, test } from "bun:test";
import type { PausableLink } from "../../base/bytes/message-link.ts";
import { maxHeldBytes, OneWay } from "./one-way.ts";

/** A sender that is told to wait. */
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

test("messages are taken in their order, each once the one before is done with", async () => {
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

test("with nobody to take them the sender is kept waiting before much is held, and goes on once there is room", () => {
  const { from, taken, state, way } = oneWay();
  state.room = false;
  way.add(new Uint8Array(10));
  expect([from.paused, taken.length]).toEqual([true, 0]);
  state.room = true;
  way.goOn();
  expect([from.paused, taken.length]).toEqual([false, 1]);
});

test("a sender that is faster than what is done with its messages is kept waiting", async () => {
  const { from, state, way } = oneWay();
  const { promise, resolve } = Promise.withResolvers<void>();
  state.waits = promise;
  way.add(new Uint8Array(1));
  state.waits = undefined;
  way.add(new Uint8Array(maxHeldBytes));
  expect(from.paused).toBe(false);
  way.add(new Uint8Array(1));
  expect(from.paused).toBe(true);
  resolve();
  await promise;
  await Promise.resolve();
  expect(from.paused).toBe(false);
});

test("what is stopped takes nothing more", () => {
  const { taken, state, way } = oneWay();
  state.room = false;
  way.add(Uint8Array.of(1));
  way.stop();
  state.room = true;
  way.goOn();
  way.add(Uint8Array.of(2));
  expect(taken).toEqual([]);
});
