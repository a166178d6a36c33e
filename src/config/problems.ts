// Problems of a configuration: each has a message, a location and a remedy.

/** The source of a value. `file`, `line` and `column` (both from 1) are undefined for flags and variables. */
export interface SourceLocation {
  file: string | undefined;
  line: number | undefined;
  column: number | undefined;
  /**
   * The key in the file, such as `models[0].price.input`, or the name of a flag or variable. Empty for the whole file.
   */
  path: string;
}

/** One problem to fix. No part of it ever holds a secret. */
export interface Problem extends SourceLocation {
  message: string;
  /** A full sentence that says what to do. */
  fix: string;
}

/** All problems of a configuration. `message` is the text to print. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(renderProblem).join("\n"));
    this.problems = problems;
  }
}

/** Throws a ConfigError with the problems, sorted by line. Does nothing if there are none. */
export function throwIfAny(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ConfigError([...problems].sort((a, b) => (a.line ?? 0) - (b.line ?? 0)));
}

/** Renders `headrace.yaml:12:9  models[0].price.input: must be … Fix: …`. */
export function renderProblem(problem: Problem): string {
  return `${renderLocation(problem)}${problem.message}. Fix: ${problem.fix}`;
}

/** Returns the location as the beginning of a message. Empty if the location has neither file nor path. */
export function renderLocation(location: SourceLocation): string {
  const subject = location.path === "" ? "" : `${location.path}: `;
  if (location.file === undefined) return subject;
  const position = location.line === undefined ? "" : `:${location.line}:${location.column ?? 1}`;
  return `${location.file}${position}  ${subject}`;
}

/** Returns the location of a flag or environment variable. */
export function locationOutsideFile(name: string): SourceLocation {
  return { file: undefined, line: undefined, column: undefined, path: name };
}

/** Maximum length of a text shown in an error. A longer text is more likely a misplaced secret than a typo. */
const maxShownTextLength = 32;

/** Renders a wrong value for an error, without secrets. */
export function renderValue(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object") return "a mapping";
  if (typeof value !== "string") return String(value);
  return value.length > maxShownTextLength ? `a text of ${value.length} characters` : JSON.stringify(value);
}
