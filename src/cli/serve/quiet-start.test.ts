import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { releaseOnceQuiet } from "./quiet-start.ts";

describe("what only starting needed", () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test("what only starting needed is released after a second in which hardly anybody asked, and only once", () => {
    const { requests, released } = start();
    expect(released()).toBe(0);
    requests.ended += 9;
    jest.advanceTimersByTime(1_000);
    expect(released()).toBe(1);
    jest.advanceTimersByTime(100_000);
    expect(released()).toBe(1);
  });

  test("what only starting needed stays while requests come or one is open", () => {
    const { requests, released } = start();
    requests.ended += 10;
    jest.advanceTimersByTime(1_000);
    requests.open = 1;
    jest.advanceTimersByTime(1_000);
    expect(released()).toBe(0);
    requests.open = 0;
    jest.advanceTimersByTime(1_000);
    expect(released()).toBe(1);
  });

  test("what only starting needed stays for good where the first minute was busy", () => {
    const { requests, released } = start();
    for (let second = 0; second < 60; second++) {
      requests.ended += 100;
      jest.advanceTimersByTime(1_000);
    }
    jest.advanceTimersByTime(100_000);
    expect(released()).toBe(0);
  });
});

function start() {
  const requests = { ended: 0, open: 0 };
  let count = 0;
  releaseOnceQuiet({ requests: () => requests }, () => void count++);
  return { requests, released: () => count };
}
