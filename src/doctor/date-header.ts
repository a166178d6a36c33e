// Compares another machine's clock with this one's by the `Date` header of an answer.

/**
 * Returns by how many milliseconds the other clock is ahead. The header has whole seconds, and was written after the
 * request was sent and before the answer arrived. Returns 0 if these times fit, and undefined without a header.
 */
export function aheadByDate(date: string | null, sentMs: number, receivedMs: number): number | undefined {
  const theirs = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(theirs)) return undefined;
  if (theirs > receivedMs) return theirs - receivedMs;
  return theirs + 1_000 < sentMs ? theirs + 1_000 - sentMs : 0;
}
