// In which time a window must have begun that is still open, where nobody remembers when it did.

const daySeconds = 86_400;

/**
 * The first use in it is taken for the beginning: no later than the window's own, so nothing that it counts is missing, and
 * it ends no later. What a window before it had at its end may be counted once more. To the end of today, whole roll-ups.
 */
export function rollingSpan(now: number, seconds: number): { since: number; until: number } {
  return { since: now - seconds + 1, until: (Math.floor(now / daySeconds) + 1) * daySeconds };
}
