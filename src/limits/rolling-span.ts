// The earliest beginning of an open rolling window, if its beginning is unknown.

const daySeconds = 86_400;

/**
 * Assumes that the window began with the first use in the returned span: no later than it really did, so no usage is
 * missing, and it ends no later. Usage of the previous window may be counted again, unless `lastStart` is known. Whole
 * roll-ups up to the end of today.
 */
export function rollingSpan(now: number, seconds: number, lastStart?: number): { since: number; until: number } {
  const earliest = now - seconds + 1;
  return {
    since: lastStart === undefined ? earliest : sinceOf(lastStart, seconds, earliest),
    until: (Math.floor(now / daySeconds) + 1) * daySeconds,
  };
}

/** Returns the last window's beginning if it is open, else its end. */
function sinceOf(lastStart: number, seconds: number, earliest: number): number {
  return lastStart >= earliest ? lastStart : Math.max(earliest, lastStart + seconds);
}
