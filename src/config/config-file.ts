// Finds and opens headrace.yaml. The YAML parser is loaded only if there is a file.
import { access, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { type CheckedFile, checkFile, withoutFile } from "./check-file.ts";
import { type Env, resolvePath } from "./formats.ts";
import { options } from "./options.ts";
import { locationOutsideFile, type Problem, type SourceLocation } from "./problems.ts";
import type { YamlFile } from "./read-yaml.ts";
import { type Flags, OptionReader } from "./sources.ts";

const defaultName = "headrace.yaml";

export interface OpenedFile extends CheckedFile {
  /** The absolute path. */
  path: string;
  /** The parsed file; undefined if there is none. */
  yaml: YamlFile | undefined;
  /** The text of the file. */
  text?: string;
}

/**
 * Finds and opens the configuration file. A file named by the flag or variable must exist. Otherwise headrace.yaml in
 * the working directory is used, if it exists.
 */
export async function findConfigFile(flags: Flags, env: Env, cwd: string): Promise<OpenedFile> {
  const reader = new OptionReader({ flags, env, file: undefined });
  const named = reader.take(options.config);
  const path = resolvePath(named.value ?? defaultName, cwd, env);
  if (!named.valid) return { path, yaml: undefined, ...withoutFile(), problems: reader.problems };
  if (named.value !== undefined) return await openFile({ path, env, cwd, namedAt: named.location });
  const opened = await openFile({ path, env, cwd, namedAt: undefined });
  if (opened.yaml !== undefined || !(await exists(join(cwd, "headrace.yml")))) return opened;
  return { ...opened, warnings: ["headrace.yml is not read; the file's name must be headrace.yaml"] };
}

/**
 * Opens the file. `namedAt` is where its name was given: a missing file is then a problem. If `namedAt` is undefined,
 * the file may be missing.
 */
export async function openFile(inputs: {
  path: string;
  env: Env;
  cwd: string;
  namedAt: SourceLocation | undefined;
}): Promise<OpenedFile> {
  const { path, env, cwd, namedAt } = inputs;
  const label = labelOf(path, cwd);
  const read = await readText(path);
  if ("code" in read) {
    if (read.code === "ENOENT" && namedAt === undefined) return { path, yaml: undefined, ...withoutFile() };
    const problem = unreadable(
      namedAt === undefined ? path : label,
      read.code,
      namedAt ?? { ...locationOutsideFile(""), file: label },
    );
    return { path, yaml: undefined, ...withoutFile(), problems: [problem] };
  }
  const { readYaml } = await import("./read-yaml.ts");
  const yaml = readYaml(read.text, label, env);
  return { path, yaml, text: read.text, ...checkFile(yaml) };
}

async function readText(path: string): Promise<{ text: string } | { code: string }> {
  try {
    return { text: await readFile(path, "utf8") };
  } catch (error) {
    return { code: error instanceof Error && "code" in error ? String(error.code) : "unknown error" };
  }
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

function unreadable(label: string, code: string, location: SourceLocation): Problem {
  if (code === "ENOENT") {
    return { ...location, message: `the file ${label} does not exist`, fix: "Correct the path, or create the file." };
  }
  const fix = "Give the path of a file that the user who starts Headrace may read.";
  return { ...location, message: `the file ${label} cannot be read (${code})`, fix };
}

/** Returns the path relative to the working directory if that is shorter. */
function labelOf(path: string, cwd: string): string {
  const fromHere = relative(cwd, path);
  return fromHere === "" || fromHere.startsWith("..") ? path : fromHere;
}
