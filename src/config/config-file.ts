// Finds and opens headrace.yaml. The YAML parser is loaded only if there is a file.
import { access, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { type CheckedFile, checkFile, withoutFile } from "./check-file.ts";
import { type Env, resolvePath } from "./formats.ts";
import { options } from "./options.ts";
import { locationOutsideFile, type Problem, type SourceLocation } from "./problems.ts";
import type { YamlFile } from "./read-yaml.ts";
import { fileReference, type SecretValues } from "./references/secret-values.ts";
import { variableReference } from "./references/variable-files.ts";
import { type Flags, OptionReader } from "./sources.ts";
import type { SecretLookup } from "./substitute.ts";

const defaultName = "headrace.yaml";

export interface OpenedFile extends CheckedFile {
  /** The absolute path. */
  path: string;
  /** The parsed file; undefined if there is none. */
  yaml: YamlFile | undefined;
  /** The text of the file. */
  text?: string;
  /** The references to secrets that the file contains. */
  references: readonly string[];
}

/**
 * Finds and opens the configuration file. A file named by the flag or variable must exist. Otherwise headrace.yaml in
 * the working directory is used, if it exists. Without `secrets`, a reference to a secret is a problem.
 */
export async function findConfigFile(flags: Flags, env: Env, cwd: string, secrets?: SecretValues): Promise<OpenedFile> {
  const reader = new OptionReader({ flags, env, file: undefined });
  const named = reader.take(options.config);
  const path = resolvePath(named.value ?? defaultName, cwd, env);
  if (!named.valid) return { ...missing(path), problems: reader.problems };
  if (named.value !== undefined) return await openFile({ path, env, cwd, secrets, namedAt: named.location });
  const opened = await openFile({ path, env, cwd, secrets, namedAt: undefined });
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
  secrets: SecretValues | undefined;
  namedAt: SourceLocation | undefined;
}): Promise<OpenedFile> {
  const { path, env, cwd, secrets, namedAt } = inputs;
  const label = labelOf(path, cwd);
  const read = await readText(path);
  if ("code" in read) {
    if (read.code === "ENOENT" && namedAt === undefined) return missing(path);
    const problem = unreadable(
      namedAt === undefined ? path : label,
      read.code,
      namedAt ?? { ...locationOutsideFile(""), file: label },
    );
    return { ...missing(path), problems: [problem] };
  }
  const { yaml, references } = await readWithSecrets(read.text, label, { path, env, cwd, secrets });
  return { path, yaml, text: read.text, references, ...checkFile(yaml) };
}

/** Parses the text of a configuration file, reads the secrets that it refers to, and puts them in. */
export async function readWithSecrets(
  text: string,
  label: string,
  { path, env, cwd, secrets }: { path: string; env: Env; cwd: string; secrets: SecretValues | undefined },
): Promise<Pick<OpenedFile, "references"> & { yaml: YamlFile }> {
  const { readYaml } = await import("./read-yaml.ts");
  const references = new Set<string>();
  const lookup = secrets && lookupIn(secrets, references, { env, cwd, directory: dirname(path) });
  const yaml = readYaml(text, label, env, lookup);
  if (!secrets || references.size === 0) return { yaml, references: [] };
  // The first pass found the references. Their secrets are read now, and put in by the second pass.
  await secrets.resolve([...references]);
  return { yaml: readYaml(text, label, env, lookup), references: [...references] };
}

function missing(path: string): OpenedFile {
  return { path, yaml: undefined, references: [], ...withoutFile() };
}

/** Looks up secrets and adds their references to `found`. A secret that was not read yet counts as empty. */
function lookupIn(
  secrets: SecretValues,
  found: Set<string>,
  { env, cwd, directory }: { env: Env; cwd: string; directory: string },
): SecretLookup {
  const secretOf = (reference: string) => {
    found.add(reference);
    return secrets.get(reference) ?? { ok: true, value: "" };
  };
  return {
    secret: (text) => secretOf(text.startsWith("file:") ? fileReference(text.slice(5), directory, env) : text),
    fileOf(variable) {
      const reference = variableReference(variable, env, cwd);
      return reference === undefined ? undefined : secretOf(reference);
    },
  };
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
