// In which time a window must have begun that is still open, where nobody remembers when it did.

const daySeconds = 86_400;

/**
 * The first use in it is taken for the beginning: no later than the window's own, so nothing that it counts is missing, and
 * it ends no later. What a window before it had at its end may be counted once more, unless `lastStart` says when the last
 * one began. To the end of today, whole roll-ups.
 */
export function rollingSpan(now: number, seconds: number, lastStart?: number): { since: number; until: number } {
  const earliest = now - seconds + 1;
  return {
    since: lastStart === undefined ? earliest : sinceOf(lastStart, seconds, earliest),
    until: (Math.floor(now / daySeconds) + 1) * daySeconds,
  };
}

/** The last window itself, where it is open; else what is behind its end. */
function sinceOf(lastStart: number, seconds: number, earliest: number): number {
  return lastStart >= earliest ? lastStart : Math.max(earliest, lastStart + seconds);
}
