// A clock that stands still until a test moves it.
import type { Clock } from "../../src/domain/clock.ts";

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
