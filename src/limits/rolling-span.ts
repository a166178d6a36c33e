// The time range in which to look for the first use of a rolling window whose start is unknown.

const daySeconds = 86_400;

/**
 * Returns the time range, from the earliest possible start until the end of today. Reading from there misses no usage
 * of the window. It may count usage of the previous window again, unless `lastStart` is known.
 */
export function rollingSpan(now: number, seconds: number, lastStart?: number): { since: number; until: number } {
  const earliest = now - seconds + 1;
  return {
    since: lastStart === undefined ? earliest : sinceOf(lastStart, seconds, earliest),
    until: (Math.floor(now / daySeconds) + 1) * daySeconds,
  };
}

/** Returns the start of the last window if it is still open, otherwise its end; at least `earliest`. */
function sinceOf(lastStart: number, seconds: number, earliest: number): number {
  return lastStart >= earliest ? lastStart : Math.max(earliest, lastStart + seconds);
}
