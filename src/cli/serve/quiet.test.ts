import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { releaseWhenQuiet } from "./quiet.ts";

describe("releaseWhenQuiet", () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test("releases what only the start needed after one quiet second, and only once", () => {
    const { requests, released } = start();
    expect(released.afterStart).toBe(0);
    requests.ended += 9;
    jest.advanceTimersByTime(1_000);
    expect(released.afterStart).toBe(1);
    jest.advanceTimersByTime(100_000);
    expect(released).toEqual({ afterStart: 1, afterLoad: 0 });
  });

  test("releases what a load needed 20 quiet seconds after that load, once for each load", () => {
    const { requests, released } = start();
    requests.ended += 10;
    jest.advanceTimersByTime(1_000);
    requests.open = 1;
    jest.advanceTimersByTime(1_000);
    requests.open = 0;
    jest.advanceTimersByTime(19_000);
    expect(released).toEqual({ afterStart: 0, afterLoad: 0 });
    jest.advanceTimersByTime(1_000);
    expect(released.afterLoad).toBe(1);
    requests.ended += 10;
    jest.advanceTimersByTime(20_000);
    expect(released.afterLoad).toBe(1);
    jest.advanceTimersByTime(1_000);
    expect(released.afterLoad).toBe(2);
    jest.advanceTimersByTime(100_000);
    expect(released).toEqual({ afterStart: 0, afterLoad: 2 });
  });

  test("releases nothing from a server that pauses for some seconds at a time", () => {
    const { requests, released } = start();
    for (let burst = 0; burst < 20; burst++) {
      requests.ended += 100;
      jest.advanceTimersByTime(15_000);
    }
    expect(released).toEqual({ afterStart: 0, afterLoad: 0 });
  });

  test("keeps compiled code in production, and discards it in development", () => {
    const { shrink } = Bun;
    let discarded = 0;
    Bun.shrink = () => void discarded++;
    try {
      for (const [mode, expected] of [
        ["production", 0],
        ["development", 2],
      ] as const) {
        discarded = 0;
        const requests = { ended: 0, open: 0 };
        releaseWhenQuiet({ requests: () => requests }, mode);
        jest.advanceTimersByTime(1_000);
        requests.ended += 100;
        jest.advanceTimersByTime(21_000);
        expect(discarded, mode).toBe(expected);
        jest.clearAllTimers();
      }
    } finally {
      Bun.shrink = shrink;
    }
  });
});

function start() {
  const requests = { ended: 0, open: 0 };
  const released = { afterStart: 0, afterLoad: 0 };
  releaseWhenQuiet({ requests: () => requests }, "development", {
    afterStart: () => void released.afterStart++,
    afterLoad: () => void released.afterLoad++,
  });
  return { requests, released };
}
