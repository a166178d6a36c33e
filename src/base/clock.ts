// The time as the rest of the program sees it. Tests can set it.

export interface Clock {
  /** Whole Unix seconds. */
  nowSeconds(): number;
  /** Milliseconds that never go back, for durations only. */
  monotonicMs(): number;
}

/** A clock that can also time work within one event of the event loop. */
export interface ExactClock extends Pick<Clock, "monotonicMs"> {
  /** Like `monotonicMs`, but reads the system clock at each call. */
  exactMs(): number;
}

/** The maximum difference between the clocks of a machine and of the database. The doctor reports more as a failure. */
export const maxClockOffsetSeconds = 15;
/**
 * The greatest clock difference of two machines, one ahead and one behind. A signature of one machine must be valid
 * for the other immediately.
 */
export const maxClockDifferenceSeconds = 2 * maxClockOffsetSeconds;

/**
 * The time is read once for each event of the event loop. A request needs the time a dozen times, and reading the
 * system clock costs more than the work that uses it.
 */
const reading = { wallMs: -1, monotonicMs: -1, isKept: false };

function forget(): void {
  reading.wallMs = -1;
  reading.monotonicMs = -1;
  reading.isKept = false;
}

/**
 * Calls `work` for one event of the event loop, during which the time is read only once. Use this function for frequent
 * events, such as packets: it saves a microtask for each.
 */
export function duringEvent<Taker, Brought>(
  work: (taker: Taker, brought: Brought) => void,
  taker: Taker,
  brought: Brought,
): void {
  forget();
  reading.isKept = true;
  try {
    work(taker, brought);
  } finally {
    forget();
  }
}

/** Keeps the time that was read until the callback of the event loop has returned. */
function keep(): void {
  if (reading.isKept) return;
  reading.isKept = true;
  queueMicrotask(forget);
}

/** Unix milliseconds at the current event. */
export function wallMs(): number {
  if (reading.wallMs < 0) {
    reading.wallMs = Date.now();
    keep();
  }
  return reading.wallMs;
}

/** Returns milliseconds that never go back, as of the current event. */
export function monotonicMs(): number {
  if (reading.monotonicMs < 0) {
    reading.monotonicMs = performance.now();
    keep();
  }
  return reading.monotonicMs;
}

/** Returns milliseconds that never go back, read from the system at each call, to time work within one event. */
export function exactMs(): number {
  return performance.now();
}

/**
 * Returns milliseconds since `startMs` of `clock`. Work that begins and ends within one event is measured too,
 * because it may take long.
 */
export function elapsedMs(clock: Pick<Clock, "monotonicMs">, startMs: number): number {
  const elapsed = clock.monotonicMs() - startMs;
  if (elapsed > 0) return elapsed;
  reading.wallMs = -1;
  reading.monotonicMs = -1;
  return clock.monotonicMs() - startMs;
}

export const systemClock: Clock & ExactClock = {
  nowSeconds: () => Math.floor(wallMs() / 1000),
  monotonicMs,
  exactMs,
};
