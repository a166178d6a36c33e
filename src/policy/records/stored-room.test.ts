import { describe, expect, test } from "bun:test";
import { roughSizeOf, StoredRoom } from "./stored-room.ts";

function roomOf(stored: () => Promise<number>, maxBytes = 1_000) {
  let [nowMs, reads] = [0, 0];
  const sizes = {
    sizeOf: () => {
      reads++;
      return stored();
    },
  };
  const room = new StoredRoom({ sizes, clock: { monotonicMs: () => nowMs }, maxBytes: () => maxBytes });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { room, reads: () => reads, pass };
}

describe("an account's space for stored objects", () => {
  test("counts space taken since the last sum, and refuses what exceeds the bound", async () => {
    const { room, reads } = roomOf(async () => 0);
    expect(await Promise.all([room.take("a", 600), room.take("a", 300), room.take("a", 300)])).toEqual([
      true,
      true,
      false,
    ]);
    expect(await room.take("b", 1_000)).toBe(true);
    expect(reads()).toBe(2);
    await expect(room.require("a", 500)).rejects.toMatchObject({ code: "request_too_large" });
  });

  test("reads the sum within seconds near the bound, and within minutes far below it", async () => {
    let stored = 900;
    const { room, reads, pass } = roomOf(async () => stored);
    expect(await room.take("a", 200)).toBe(false);
    stored = 100;
    pass(5_000);
    expect(await room.take("a", 200)).toBe(true);
    pass(60_000);
    expect(await room.take("a", 200)).toBe(true);
    expect(reads()).toBe(2);
    pass(300_000);
    expect(await room.take("a", 200)).toBe(true);
    expect(reads()).toBe(3);
  });

  test("reads a slow sum again only after a hundred times its duration", async () => {
    const slow = roomOf(async () => {
      slow.pass(10_000);
      return 900;
    });
    expect(await slow.room.take("a", 1)).toBe(true);
    slow.pass(999_000);
    expect(await slow.room.take("a", 1)).toBe(true);
    expect(slow.reads()).toBe(1);
    slow.pass(1_000);
    expect(await slow.room.take("a", 1)).toBe(true);
    expect(slow.reads()).toBe(2);
  });

  test("returns the space of a failed insert", async () => {
    const { room } = roomOf(async () => 0);
    expect(await room.take("a", 1_000)).toBe(true);
    room.giveBack("a", 1_000);
    expect(await room.take("a", 1_000)).toBe(true);
  });

  test("rejects if the sum cannot be read, and reads it with the next request", async () => {
    let isAway = true;
    const { room } = roomOf(() => (isAway ? Promise.reject(new Error("away")) : Promise.resolve(0)));
    await expect(room.take("a", 1)).rejects.toThrow("away");
    isAway = false;
    expect(await room.take("a", 1)).toBe(true);
  });
});

test("estimates the size of a value by its texts", () => {
  expect(roughSizeOf("x".repeat(1_000))).toBe(1_000);
  expect(roughSizeOf([{ text: "x".repeat(1_000) }, null, 1])).toBeWithin(1_000, 1_200);
});
