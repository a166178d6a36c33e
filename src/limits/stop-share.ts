// Decides how much of a quota's remainder one answer gets at a time if others use the quota too. The Redis script has
// the same rule.

/** Number of pieces in a block; a piece is the smallest amount worth granting. */
export const piecesOfBlock = 32;

/**
 * Returns an amount out of `remaining` for one of the running requests, which wants `wanted` more. The amount shrinks
 * with the remainder and never exceeds it.
 */
export function shareOf(wanted: number, remaining: number, running: number): number {
  const fair = Math.max(Math.ceil(wanted / piecesOfBlock), Math.floor(remaining / (2 * Math.max(1, running))));
  return Math.max(0, Math.min(wanted, fair, remaining));
}
