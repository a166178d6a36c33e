// Time as the rest of the program sees it, so that tests can set it.

export interface Clock {
  /** Unix seconds, whole. */
  nowSeconds(): number;
  /** Milliseconds that never go back; for durations only. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowSeconds: () => Math.floor(Date.now() / 1000),
  monotonicMs: () => performance.now(),
};
