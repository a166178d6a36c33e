// Finds the period in which an open rolling window must have begun, if its start is unknown.

const daySeconds = 86_400;

/**
 * Returns the period of whole roll-ups, up to the end of today, in which the window's first use is searched. The
 * window then starts no later than it really did, so no usage is missing, and ends no later. Usage of the previous
 * window may be counted again, unless `lastStart` is known.
 */
export function rollingSpan(now: number, seconds: number, lastStart?: number): { since: number; until: number } {
  const earliest = now - seconds + 1;
  return {
    since: lastStart === undefined ? earliest : sinceOf(lastStart, seconds, earliest),
    until: (Math.floor(now / daySeconds) + 1) * daySeconds,
  };
}

/** Returns the start of the last window if it is open, and otherwise its end, but no earlier than `earliest`. */
function sinceOf(lastStart: number, seconds: number, earliest: number): number {
  return lastStart >= earliest ? lastStart : Math.max(earliest, lastStart + seconds);
}
