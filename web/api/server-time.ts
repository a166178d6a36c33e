// What time it is at the server, by whose clock all that it tells of happened; the reader's may be wrong by hours.

/** Below it the two differ by what an answer took, and by the seconds that the header leaves out. */
const sameMs = 30_000;
let aheadMs = 0;

/** `date`: the header of an answer that has just come. */
export function noteServerTime(date: string | null): void {
  const distanceMs = Date.parse(date ?? "") - Date.now();
  if (Number.isFinite(distanceMs)) aheadMs = Math.abs(distanceMs) < sameMs ? 0 : distanceMs;
}

/** Unix seconds, with a fraction. */
export function nowSeconds(): number {
  return (Date.now() + aheadMs) / 1000;
}
