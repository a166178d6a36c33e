// How tests get at what they test: from the outside, with a clock and collaborators that are handed in.
import { lineAt, type SourceFile } from "./imports.ts";

const ways: readonly [pattern: RegExp, instead: string][] = [
  [/\bspyOn\((?:globalThis\.)?(?:performance|Date)\b/g, "hand in a Clock (tests/support/manual-clock.ts)"],
  [/\b(?:performance|Date)\.now\s*=(?!=)/g, "hand in a Clock (tests/support/manual-clock.ts)"],
  [/\bsetSystemTime\(/g, "hand in a Clock (tests/support/manual-clock.ts)"],
  [
    /\bas\s+unknown\s*\)?\s+as\b|\bas\s+any\b(?=\s*[);,.\]])/g,
    "have the product ask for less, as an interface of what it uses",
  ],
];

/** One line for each way into the inside in a test that is not in `owing`. A comment counts as well. */
export function checkTests(files: readonly SourceFile[], owing: readonly string[]): string[] {
  return files
    .filter(({ path }) => /\.test\.tsx?$/.test(path))
    .flatMap(({ path, text }) => {
      const found = ways.flatMap(([pattern, instead]) =>
        [...text.matchAll(pattern)].map(
          ({ 0: way, index }) => `${path}:${lineAt(text, index)}: ${way.trim()} is the inside: ${instead}.`,
        ),
      );
      if (!owing.includes(path)) return found;
      return found.length > 0 ? [] : [`${path}: tests from the outside: its line in scripts/house/owed.ts goes.`];
    });
}
