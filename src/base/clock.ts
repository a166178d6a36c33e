// The clock of the gateway, which tests can set.

export interface Clock {
  /** Whole Unix seconds. */
  nowSeconds(): number;
  /** Milliseconds that never go back, for durations only. */
  monotonicMs(): number;
}

/** A clock that can also measure work that begins and ends within one event of the event loop. */
export interface ExactClock extends Pick<Clock, "monotonicMs"> {
  /** Like `monotonicMs`, but reads the system clock at each call. */
  exactMs(): number;
}

/** The maximum difference between the clocks of a machine and of the database. The doctor reports more as a failure. */
export const maxClockOffsetSeconds = 15;
/**
 * The greatest difference between the clocks of two machines, if one is ahead of the database and the other behind. A
 * signature made on one machine must be valid immediately on the other.
 */
export const maxClockDifferenceSeconds = 2 * maxClockOffsetSeconds;

/**
 * The cached time, read once for each event of the event loop. A request needs the time a dozen times, and reading the
 * system clock costs more than the work that uses it.
 */
const reading = { wallMs: -1, monotonicMs: -1, isKept: false };

function forget(): void {
  reading.wallMs = -1;
  reading.monotonicMs = -1;
  reading.isKept = false;
}

/**
 * Calls `work` with one reading of the clock for the whole call. Use this function for frequent events, such as
 * packets, because it saves a microtask for each.
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

/** Caches the time until the current callback of the event loop has returned. */
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
 * Returns the milliseconds since `startMs` of `clock`. If no time seems to have passed, the system clock is read again,
 * so that work within one event is measured too.
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
