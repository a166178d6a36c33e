// Decides how much of a quota's remainder one answer gets at a time if others share it. The Redis script has the same
// rule.

/** The smallest worthwhile piece: a block has this many. */
export const piecesOfBlock = 32;

/**
 * Returns a share of `remaining` for one of the running requests that wants `wanted` more. The share shrinks with the
 * remainder and never exceeds it.
 */
export function shareOf(wanted: number, remaining: number, running: number): number {
  const fair = Math.max(Math.ceil(wanted / piecesOfBlock), Math.floor(remaining / (2 * Math.max(1, running))));
  return Math.max(0, Math.min(wanted, fair, remaining));
}
