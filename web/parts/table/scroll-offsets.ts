// Keeps the scroll positions of lists by page address, for users who come back.
import { addressHere, cameBack } from "../page/came-back.ts";

const maxKept = 50;
const offsets = new Map<string, number>();

/** `list` distinguishes several lists of one page. `offset` is in pixels from the top. */
export function keepOffset(list: string, offset: number): void {
  const key = keyOf(list);
  offsets.delete(key);
  offsets.set(key, offset);
  const [oldest] = offsets.keys();
  if (offsets.size > maxKept && oldest !== undefined) offsets.delete(oldest);
}

/** Returns 0, the top, unless the user came back to the page. */
export function keptOffset(list: string): number {
  return cameBack() ? (offsets.get(keyOf(list)) ?? 0) : 0;
}

function keyOf(list: string): string {
  return `${addressHere()} ${list}`;
}
