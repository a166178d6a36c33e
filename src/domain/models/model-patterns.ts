// The language in which rules name models: an id, or the beginning of ids with an asterisk behind it.

export const maxModelPatternLength = 256;
export const modelPatternPattern = /^[^\s*]+\*?$/;
/** Each is looked at with every request of the key. */
export const maxKeyModels = 100;

/** Whether one of them names this model. */
export function matchesModel(patterns: readonly string[], model: string): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : pattern === model,
  );
}

/** Whether each model that the inner one names is named by the outer one as well. */
export function coversPattern(outer: string, inner: string): boolean {
  if (!outer.endsWith("*")) return inner === outer;
  return (inner.endsWith("*") ? inner.slice(0, -1) : inner).startsWith(outer.slice(0, -1));
}

/** What both name: two patterns are apart, or one is within the other, so that it is the inner ones. */
export function commonPatterns(some: readonly string[], others: readonly string[]): string[] {
  const common = some.flatMap((a) =>
    others.flatMap((b) => {
      if (coversPattern(a, b)) return [b];
      return coversPattern(b, a) ? [a] : [];
    }),
  );
  return [...new Set(common)];
}
