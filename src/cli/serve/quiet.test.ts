import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { releaseWhenQuiet } from "./quiet.ts";

describe("memory that is not needed any more", () => {
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

  test("what a load needed is released 20 quiet seconds after it, once for each load", () => {
    const { requests, released } = start();
    requests.ended += 10;
    jest.advanceTimersByTime(1_000);
    requests.open = 1;
    jest.advanceTimersByTime(1_000);
    requests.open = 0;
    jest.advanceTimersByTime(19_000);
    expect(released()).toBe(0);
    jest.advanceTimersByTime(1_000);
    expect(released()).toBe(1);
    requests.ended += 10;
    jest.advanceTimersByTime(20_000);
    expect(released()).toBe(1);
    jest.advanceTimersByTime(1_000);
    expect(released()).toBe(2);
    jest.advanceTimersByTime(100_000);
    expect(released()).toBe(2);
  });

  test("a server that is used with pauses of some seconds keeps what it has", () => {
    const { requests, released } = start();
    for (let burst = 0; burst < 20; burst++) {
      requests.ended += 100;
      jest.advanceTimersByTime(15_000);
    }
    expect(released()).toBe(0);
  });
});

function start() {
  const requests = { ended: 0, open: 0 };
  let count = 0;
  releaseWhenQuiet({ requests: () => requests }, () => void count++);
  return { requests, released: () => count };
}
