// Time as the rest of the program sees it, so that tests can set it.

export interface Clock {
  /** Unix seconds, whole. */
  nowSeconds(): number;
  /** Milliseconds that never go back; for durations only. */
  monotonicMs(): number;
}

/** A clock for those who time what happens within one event as well. */
export interface ExactClock extends Pick<Clock, "monotonicMs"> {
  /** Like `monotonicMs`, but asked of the system at each call. */
  exactMs(): number;
}

/** How far the clock of a machine may be off that of the database: beyond it the doctor calls it a failure. */
export const maxClockOffsetSeconds = 15;
/**
 * How far two machines may then be apart, one ahead and one behind: what one of them signs now is taken by the other.
 */
export const maxClockDifferenceSeconds = 2 * maxClockOffsetSeconds;

/**
 * Read once for all that is done in one go, from an event to the end of what it brings about: a request asks for the time
 * a dozen times, and to ask the system takes longer than all that is done with the answer.
 */
const reading = { wallMs: -1, monotonicMs: -1, isKept: false };

function forget(): void {
  reading.wallMs = -1;
  reading.monotonicMs = -1;
  reading.isKept = false;
}

/**
 * Calls `work` for what the event loop brings: the time is read once for all of it, and anew behind it. Elsewhere that takes
 * a microtask for each event; this is for those that are as frequent as packets.
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

/** Until whoever was called by the event loop has returned to it. */
function keep(): void {
  if (reading.isKept) return;
  reading.isKept = true;
  queueMicrotask(forget);
}

/** Unix milliseconds at the event that is being worked on. */
export function wallMs(): number {
  if (reading.wallMs < 0) {
    reading.wallMs = Date.now();
    keep();
  }
  return reading.wallMs;
}

/** Milliseconds that never go back, at the event that is being worked on. */
export function monotonicMs(): number {
  if (reading.monotonicMs < 0) {
    reading.monotonicMs = performance.now();
    keep();
  }
  return reading.monotonicMs;
}

/** Milliseconds that never go back, asked of the system at each call: for what is timed within one event. */
export function exactMs(): number {
  return performance.now();
}

/**
 * Milliseconds since `startMs` of `clock`. What began and ended within one event is timed as well: it may be what took
 * long.
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
