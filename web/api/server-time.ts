// Estimates the server's time, because the reader's clock may be wrong by hours.

/** A smaller difference comes from network delay and from the header's resolution of a second. */
const sameMs = 30_000;
let aheadMs = 0;

/** `date` is the `Date` header of an answer that has just arrived. */
export function noteServerTime(date: string | null): void {
  const distanceMs = Date.parse(date ?? "") - Date.now();
  if (Number.isFinite(distanceMs)) aheadMs = Math.abs(distanceMs) < sameMs ? 0 : distanceMs;
}

/** Returns the server's time in Unix seconds, with a fraction. */
export function nowSeconds(): number {
  return (Date.now() + aheadMs) / 1000;
}
