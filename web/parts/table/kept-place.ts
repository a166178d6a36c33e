// Where lists were scrolled to, by the address that showed them, for whoever comes back to them.
import { addressHere, cameBack } from "../page/came-back.ts";

const maxKept = 50;
const places = new Map<string, number>();

/** `list` tells apart those of one address. Pixels from the top. */
export function keepPlace(list: string, offset: number): void {
  const key = keyOf(list);
  places.delete(key);
  places.set(key, offset);
  const [oldest] = places.keys();
  if (places.size > maxKept && oldest !== undefined) places.delete(oldest);
}

/** 0, the top, for whoever did not come back. */
export function keptPlace(list: string): number {
  return cameBack() ? (places.get(keyOf(list)) ?? 0) : 0;
}

function keyOf(list: string): string {
  return `${addressHere()} ${list}`;
}
