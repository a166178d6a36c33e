// What is wrong with a configuration, where it stands, and how that is told.

/** Where a value stands. `file`, `line` and `column` (both from 1) are undefined for flags and variables. */
export interface Place {
  file: string | undefined;
  line: number | undefined;
  column: number | undefined;
  /** The key in the file (`models[0].price.input`), or the name of the flag or variable; empty for a file as a whole. */
  path: string;
}

/** One thing to put right. No part of it ever holds a secret. */
export interface Problem extends Place {
  message: string;
  /** A full sentence that says what to do. */
  fix: string;
}

/** Everything found wrong in one go; `message` is the text to print. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(renderProblem).join("\n"));
    this.problems = problems;
  }
}

/** Throws when anything was found; problems of a file in the order of its lines. */
export function throwIfAny(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ConfigError([...problems].sort((a, b) => (a.line ?? 0) - (b.line ?? 0)));
}

/** `headrace.yaml:12:9  models[0].price.input: must be … Fix: …` */
export function renderProblem(problem: Problem): string {
  return `${renderPlace(problem)}${problem.message}. Fix: ${problem.fix}`;
}

/** What a message about this place begins with; nothing for no place at all. */
export function renderPlace(place: Place): string {
  const subject = place.path === "" ? "" : `${place.path}: `;
  if (place.file === undefined) return subject;
  const position = place.line === undefined ? "" : `:${place.line}:${place.column ?? 1}`;
  return `${place.file}${position}  ${subject}`;
}

/** The place of a flag, or of an environment variable. */
export function placeOutsideFile(name: string): Place {
  return { file: undefined, line: undefined, column: undefined, path: name };
}

/** Longer texts are more likely a secret in the wrong place than a slip worth showing. */
const longestShownText = 32;

/** A wrong value as an error may show it. */
export function renderValue(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object") return "a mapping";
  if (typeof value !== "string") return String(value);
  return value.length > longestShownText ? `a text of ${value.length} characters` : JSON.stringify(value);
}

/** The candidate a person most likely meant, or undefined when none is near. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = plain(word);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, plain(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** `apiKey`, `api-key` and `api_key` are the same slip away from each other: none. */
function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[_-]/g, "");
}

/** Insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let best = Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) best = Math.min(best, (beforePrevious[column - 2] ?? best) + 1);
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}
