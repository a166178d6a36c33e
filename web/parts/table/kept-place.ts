// Where lists were scrolled to, by the address that showed them, for whoever comes back to them.
import { addressHere, cameBack } from "../page/came-back.ts";

const maxKept = 50;
const offsets = new Map<string, number>();

/** `list` tells apart those of one address. Pixels from the top. */
export function keepOffset(list: string, offset: number): void {
  const key = keyOf(list);
  offsets.delete(key);
  offsets.set(key, offset);
  const [oldest] = offsets.keys();
  if (offsets.size > maxKept && oldest !== undefined) offsets.delete(oldest);
}

/** 0, the top, for whoever did not come back. */
export function keptOffset(list: string): number {
  return cameBack() ? (offsets.get(keyOf(list)) ?? 0) : 0;
}

function keyOf(list: string): string {
  return `${addressHere()} ${list}`;
}
