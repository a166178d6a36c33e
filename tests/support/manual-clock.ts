// A clock that stands still until a test moves it.
import { type Clock, systemClock } from "../../src/base/clock.ts";

export interface ManualClock extends Clock {
  /** Both clocks go on. */
  advance(ms: number): void;
  /** Somebody sets the wall clock, forwards or back; durations are not touched. */
  jump(seconds: number): void;
}

export function manualClock(startSeconds = 1_790_000_000): ManualClock {
  let wallMs = startSeconds * 1000;
  let monotonicMs = 1_000_000;
  return {
    nowSeconds: () => Math.floor(wallMs / 1000),
    monotonicMs: () => monotonicMs,
    advance(ms) {
      wallMs += ms;
      monotonicMs += ms;
    },
    jump(seconds) {
      wallMs += seconds * 1000;
    },
  };
}

/** The system's clock, which a test sets on: for a whole server, beside which time really passes. */
export interface ShiftedClock extends Clock {
  /** Both go on. */
  shift(seconds: number): void;
  /** Somebody sets the wall clock; durations are not touched. */
  jump(seconds: number): void;
}

export function shiftedClock(): ShiftedClock {
  let shiftSeconds = 0;
  let jumpedSeconds = 0;
  return {
    nowSeconds: () => systemClock.nowSeconds() + shiftSeconds + jumpedSeconds,
    monotonicMs: () => systemClock.monotonicMs() + shiftSeconds * 1000,
    shift(seconds) {
      shiftSeconds += seconds;
    },
    jump(seconds) {
      jumpedSeconds += seconds;
    },
  };
}
