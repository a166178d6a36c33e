// Estimates the server's time, because the reader's clock may be wrong by hours.

/** A difference of the clocks that is ignored: network delay and the header's whole seconds cause as much. */
const sameMs = 30_000;
let aheadMs = 0;

/** Compares the clocks. `date` is the `Date` header of an answer that has just arrived. */
export function noteServerTime(date: string | null): void {
  const distanceMs = Date.parse(date ?? "") - Date.now();
  if (Number.isFinite(distanceMs)) aheadMs = Math.abs(distanceMs) < sameMs ? 0 : distanceMs;
}

/** Returns the server's time in Unix seconds, with a fraction. */
export function nowSeconds(): number {
  return (Date.now() + aheadMs) / 1000;
}
