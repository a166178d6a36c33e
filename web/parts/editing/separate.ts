// Splits pasted texts of a field for several values.

/** A typed or pasted text may hold several values. */
export function separate(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => text.split(/[\s,;]+/)).filter((text) => text !== ""))];
}
