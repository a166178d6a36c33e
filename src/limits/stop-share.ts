// How much of what quotas have left one answer is given at a time, where others share it; the script for Redis does the same.

/** The smallest piece that is worth asking for: a block is this many of it. */
export const piecesOfBlock = 32;

/** `wanted` more of what is `left`, for one of so many requests that are running; less as less is left, and never more than that. */
export function shareOf(wanted: number, left: number, running: number): number {
  const fair = Math.max(Math.ceil(wanted / piecesOfBlock), Math.floor(left / (2 * Math.max(1, running))));
  return Math.max(0, Math.min(wanted, fair, left));
}
