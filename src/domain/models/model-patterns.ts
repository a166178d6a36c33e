// Patterns for models in rules: an id, or a prefix ending in `*`.
import { maskKeys } from "../api-key.ts";

export const maxModelPatternLength = 256;
export const modelPatternPattern = /^[^\s*]+\*?$/;
/** Maximum number of patterns. Each is checked with every request of the key. */
export const maxKeyModels = 100;

/** Reports whether one of the patterns matches this model. */
export function matchesModel(patterns: readonly string[], model: string): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : pattern === model,
  );
}

/** Reports whether every model that `inner` matches is also matched by `outer`. */
export function coversPattern(outer: string, inner: string): boolean {
  if (!outer.endsWith("*")) return inner === outer;
  return (inner.endsWith("*") ? inner.slice(0, -1) : inner).startsWith(outer.slice(0, -1));
}

/**
 * Returns the patterns that both lists allow. Of two patterns with a match in common, one always includes the other,
 * and the narrower pattern is returned.
 */
export function commonPatterns(some: readonly string[], others: readonly string[]): string[] {
  const common = some.flatMap((a) =>
    others.flatMap((b) => {
      if (coversPattern(a, b)) return [b];
      return coversPattern(b, a) ? [a] : [];
    }),
  );
  return [...new Set(common)];
}

/** Matches printable ASCII without spaces. A client may send a prompt in the place of a model. */
const modelName = /^[!-~]{1,128}$/;

/** Reports whether the text may be the name of a model: printable ASCII without spaces. */
export function mayNameModel(text: string): boolean {
  return modelName.test(text);
}

/** Returns the text for a log line: keys are masked, and what names no model is left out. */
export function loggedModel(text: string): string {
  return mayNameModel(text) ? maskKeys(text) : "(no model name)";
}
