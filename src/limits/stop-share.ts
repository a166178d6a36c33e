// Decides how much of a quota one answer reserves at a time while other answers use the quota too. The Lua script
// applies the same rule.

/** Number of pieces in a requested amount. At least one piece is granted while that much remains. */
export const piecesOfBlock = 32;

/**
 * Returns how much of `remaining` one of the running requests gets if it wants `wanted`. Never more than `remaining`.
 */
export function shareOf(wanted: number, remaining: number, running: number): number {
  const fair = Math.max(Math.ceil(wanted / piecesOfBlock), Math.floor(remaining / (2 * Math.max(1, running))));
  return Math.max(0, Math.min(wanted, fair, remaining));
}
