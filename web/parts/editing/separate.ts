// Splits pasted texts of a field for several values.

/** Returns the values in `texts`, split at whitespace, commas and semicolons, without empty and repeated values. */
export function separate(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => text.split(/[\s,;]+/)).filter((text) => text !== ""))];
}
