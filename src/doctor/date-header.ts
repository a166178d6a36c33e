// Another machine's clock, as far as the header `Date` of an answer tells it.

/**
 * Milliseconds by which it is ahead. The header is in whole seconds and was written between the two times: 0 where it
 * fits. Undefined where there is none.
 */
export function aheadByDate(date: string | null, sentMs: number, receivedMs: number): number | undefined {
  const theirs = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(theirs)) return undefined;
  if (theirs > receivedMs) return theirs - receivedMs;
  return theirs + 1_000 < sentMs ? theirs + 1_000 - sentMs : 0;
}
