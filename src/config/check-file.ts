// Validates the data of headrace.yaml against its schema, and turns errors into problems with line and fix.
import type * as z from "zod";
import { nearest } from "../base/text/nearest.ts";
import { crossProblems, referenceProblems, warningsOf } from "./cross-checks.ts";
import { ruleOf, schemaAt } from "./field.ts";
import { type FileData, fileSchema } from "./file-schema.ts";
import { readNumber, readSwitch } from "./formats.ts";
import { options } from "./options.ts";
import { type Path, renderPath, valueAt } from "./paths.ts";
import { type Problem, renderValue } from "./problems.ts";
import type { YamlFile } from "./read-yaml.ts";

export interface CheckedFile {
  /** The validated data, or only the defaults if there are problems. */
  data: FileData;
  problems: readonly Problem[];
  warnings: readonly string[];
}

/** Returns the result for a missing file: only defaults. */
export function withoutFile(): CheckedFile {
  return { data: fileSchema.parse({}), problems: [], warnings: [] };
}

/** Validates the file and reports all problems at once; never throws. */
export function checkFile(file: YamlFile): CheckedFile {
  if (file.data === undefined) return { ...withoutFile(), problems: file.problems };
  const result = parseWithVariables(file);
  if (!result.success) {
    // If a variable is missing, that is reported already, so its value gets no second problem.
    const reported = new Set(file.problems.map((problem) => problem.path));
    const issues = result.error.issues.filter((issue) => !reported.has(renderPath(issue.path)));
    const rest = withoutFaults(file.data, result.error.issues);
    const problems = [
      ...[...file.problems, ...issues.flatMap((issue) => issueProblems(file, issue))],
      ...(rest ? referenceProblems(file, rest) : []),
    ];
    return { ...withoutFile(), problems };
  }
  const problems = [...file.problems, ...crossProblems(file, result.data)];
  if (problems.length > 0) return { ...withoutFile(), problems };
  return { data: result.data, problems, warnings: warningsOf(file, result.data) };
}

/** Maximum number of parents that are removed around a faulty value. */
const maxRemovals = 5;

/**
 * Returns the data without the faulty values, so that references to other parts of the file are checked in the same
 * run. Undefined if an entry or a section cannot be valid without its faulty value, because further checks would then
 * report faults that do not exist.
 */
function withoutFaults(data: unknown, found: readonly z.core.$ZodIssue[]): FileData | undefined {
  const rest = structuredClone(data);
  let issues = found;
  for (let round = 0; round < maxRemovals; round++) {
    for (const issue of issues) {
      if (issue.code === "unrecognized_keys") {
        const parent = valueAt(rest, issue.path);
        for (const key of issue.keys) if (isMapping(parent)) Reflect.deleteProperty(parent, key);
      } else if (!removeAt(rest, issue.path)) return undefined;
    }
    const result = fileSchema.safeParse(rest);
    if (result.success) return result.data;
    issues = result.error.issues;
  }
  return undefined;
}

/**
 * Removes the value at the path or, if it is missing, the mapping that lacks it. Removes nothing and returns false for
 * a list, an entry of a list, and a section of the file.
 */
function removeAt(data: unknown, path: Path): boolean {
  const key = path.at(-1);
  const parent = valueAt(data, path.slice(0, -1));
  if (key === undefined || typeof key === "number" || !isMapping(parent)) return false;
  if (!Object.hasOwn(parent, key)) return removeAt(data, path.slice(0, -1));
  const schema = schemaAt(fileSchema, path);
  return path.length > 1 && schema !== undefined && !("element" in schema) && Reflect.deleteProperty(parent, key);
}

function isMapping(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Validates the data. The value of a variable is text, so it is parsed if the schema wants a number or a switch. */
function parseWithVariables(file: YamlFile): z.ZodSafeParseResult<FileData> {
  const first = fileSchema.safeParse(file.data);
  if (first.success) return first;
  let changed = false;
  for (const issue of first.error.issues) {
    if (issue.code !== "invalid_type" || file.variables(issue.path).length === 0) continue;
    const value = coerce(valueAt(file.data, issue.path), issue.expected);
    const parent = valueAt(file.data, issue.path.slice(0, -1));
    const key = issue.path.at(-1);
    if (value === undefined || key === undefined || typeof parent !== "object" || parent === null) continue;
    changed = Reflect.set(parent, key, value);
  }
  return changed ? fileSchema.safeParse(file.data) : first;
}

function coerce(value: unknown, expected: string): number | boolean | undefined {
  if (typeof value !== "string") return undefined;
  if (expected === "boolean") return readSwitch(value);
  return expected === "number" || expected === "int" ? readNumber(value) : undefined;
}

function issueProblems(file: YamlFile, issue: z.core.$ZodIssue): Problem[] {
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey(file, issue.path, key));
  const schema = schemaAt(fileSchema, issue.path);
  const rule = schema && ruleOf(schema);
  const must = rule?.must ?? "a valid value";
  const fix = rule?.fix ?? "Compare with the reference page of the configuration.";
  const value = valueAt(file.data, issue.path);
  const location = { ...file.locate(issue.path), path: renderPath(issue.path) };
  if (value === undefined) return [{ ...location, message: `is missing; it must be ${must}`, fix }];
  return [{ ...location, message: `must be ${must}${shown(file, issue.path, value, rule?.quiet)}`, fix }];
}

/**
 * Renders a wrong value. If it came from a variable, only the variable's name is shown, because the value may be
 * secret.
 */
function shown(file: YamlFile, path: Path, value: unknown, quiet: boolean | undefined): string {
  const names = file.variables(path);
  if (names.length > 0) return ` (its value comes from ${names.map((name) => `\${${name}}`).join(", ")})`;
  if (!quiet || typeof value === "object") return ` (got ${renderValue(value)})`;
  return typeof value === "string" ? "" : ` (got a ${typeof value} without quotes)`;
}

function unknownKey(file: YamlFile, path: Path, key: string): Problem {
  const location = file.locateKey(path, key);
  const elsewhere = Object.values(options).find((option) => option.env === `HEADRACE_${key.toUpperCase()}`);
  if (path.length === 0 && elsewhere?.env !== undefined && elsewhere.file === undefined) {
    const fix = `Set the environment variable ${elsewhere.env} instead.`;
    return { ...location, message: "is not read from the file", fix };
  }
  const schema = schemaAt(fileSchema, path);
  const known = schema !== undefined && "shape" in schema ? Object.keys(schema.shape as object) : [];
  const meant = nearest(key, known);
  const guess = meant === undefined ? "" : `Did you mean ${meant}? `;
  return { ...location, message: "is not a known key", fix: `${guess}Known here: ${known.join(", ")}.` };
}
