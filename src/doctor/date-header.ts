// Another machine's clock, as far as the `Date` header of an answer tells.

/**
 * Returns the milliseconds by which the other clock is ahead. The header has whole seconds and was written between the
 * two times: 0 if it fits. Undefined without a header.
 */
export function aheadByDate(date: string | null, sentMs: number, receivedMs: number): number | undefined {
  const theirs = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(theirs)) return undefined;
  if (theirs > receivedMs) return theirs - receivedMs;
  return theirs + 1_000 < sentMs ? theirs + 1_000 - sentMs : 0;
}
