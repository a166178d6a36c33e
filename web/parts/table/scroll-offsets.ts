// Keeps the scroll positions of lists by page address, for users who come back.
import { addressHere, cameBack } from "../page/came-back.ts";

const maxKept = 50;
const offsets = new Map<string, number>();

/** Stores a list's scroll position. `list` distinguishes the lists of a page; `offset` is in pixels from the top. */
export function keepOffset(list: string, offset: number): void {
  const key = keyOf(list);
  offsets.delete(key);
  offsets.set(key, offset);
  const [oldest] = offsets.keys();
  if (offsets.size > maxKept && oldest !== undefined) offsets.delete(oldest);
}

/** Returns the stored scroll position if the user came back to the page, else 0. */
export function keptOffset(list: string): number {
  return cameBack() ? (offsets.get(keyOf(list)) ?? 0) : 0;
}

function keyOf(list: string): string {
  return `${addressHere()} ${list}`;
}
