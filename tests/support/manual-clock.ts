// A clock that stands still until a test moves it.
import { type Clock, systemClock } from "../../src/domain/clock.ts";

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
export function shiftedClock(): Clock & { shift(seconds: number): void } {
  let shiftSeconds = 0;
  return {
    nowSeconds: () => systemClock.nowSeconds() + shiftSeconds,
    monotonicMs: () => systemClock.monotonicMs() + shiftSeconds * 1000,
    shift(seconds) {
      shiftSeconds += seconds;
    },
  };
}
