// Texts of a field for several, of which one may have been pasted as many.

/** What was typed or pasted as one text may be several. */
export function separate(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => text.split(/[\s,;]+/)).filter((text) => text !== ""))];
}
