// The configuration in effect, for operators: each value with its source, secrets redacted, and what the file on the
// disk would change. Loaded only when somebody asks.
import { readFile } from "node:fs/promises";
import type * as z from "zod";
import { checkFile, withoutFile } from "./check-file.ts";
import { readWithSecrets } from "./config-file.ts";
import { ruleOf, schemaAt } from "./field.ts";
import { fileSchema, reloadableKeys } from "./file-schema.ts";
import type { Env } from "./formats.ts";
import { type Option, options, secretVariables } from "./options.ts";
import { type Path, renderPath, valueAt } from "./paths.ts";
import { renderProblem } from "./problems.ts";
import type { YamlFile } from "./read-yaml.ts";
import type { SecretValues } from "./references/secret-values.ts";
import { withVariableFiles } from "./references/variable-files.ts";
import { type Flags, OptionReader } from "./sources.ts";

/** The texts of headrace.yaml that a running server uses. A text is undefined if there is no file. */
export interface TextsInEffect {
  path: string;
  /** The file as it was at the start. */
  startup: string | undefined;
  /** The file as it was at the last accepted reload. */
  reloaded: string | undefined;
  flags: Flags;
  env: Env;
  secrets: SecretValues | undefined;
}

export interface Setting {
  /** The key in the file; the name of the variable or flag for a setting that the file cannot have. */
  name: string;
  value: unknown;
  /** The origin of the value: `--port`, `HEADRACE_PORT`, `headrace.yaml:3` or `default`. */
  source: string;
}

export interface FileDifference {
  /** The path of the key, such as `models[0].price.input`. */
  path: string;
  /**
   * The redacted value in use. `in_file` is the redacted value in the file on the disk. Null means that the key is not
   * set.
   */
  in_effect: unknown;
  in_file: unknown;
  needs_restart: boolean;
}

export interface ConfigInEffect {
  settings: Setting[];
  /** The sections of the file with their defaults. */
  sections: Record<string, unknown>;
  sections_in_file: string[];
  /** Differences of the file on the disk. */
  differences: FileDifference[];
  /** Problems of the file on the disk, which keep it from being reloaded. */
  problems: string[];
}

const redacted = "[redacted]";

export async function configInEffect(texts: TextsInEffect): Promise<ConfigInEffect> {
  const { path, flags, secrets } = texts;
  const cwd = process.cwd();
  const env = secrets ? await withVariableFiles(texts.env, secretVariables, { secrets, cwd }) : texts.env;
  const open = async (text: string | undefined) =>
    text === undefined ? undefined : (await readWithSecrets(text, path, { path, env, cwd, secrets })).yaml;
  const startup = await open(texts.startup);
  const reloaded = await open(texts.reloaded);
  const current = { ...inFile(startup), ...only(inFile(reloaded), reloadableKeys) };
  const disk = await open(await readFile(path, "utf8").catch(() => undefined));
  const checked = disk && checkFile(disk);
  const source = (key: string) => (reloadableKeys.includes(key) ? reloaded : startup);
  const sections = Object.keys(fileSchema.shape).filter(
    (key) => !isOption(key) && valueAt(current, [key]) !== undefined,
  );
  const reader = new OptionReader({ flags, env, file: startup });
  return {
    settings: settingsOf(reader, startup),
    sections: Object.fromEntries(sections.map((key) => [key, shown(source(key), [key], valueAt(current, [key]))])),
    sections_in_file: sections.filter((key) => valueAt(source(key)?.data, [key]) !== undefined),
    differences:
      !disk || !checked || checked.problems.length > 0
        ? []
        : differencesOf(current, checked.data, { source, disk }, outrankedPaths(reader)),
    problems: checked?.problems.map(renderProblem) ?? [],
  };
}

function inFile(file: YamlFile | undefined): object {
  return file ? checkFile(file).data : withoutFile().data;
}

function only(data: object, keys: readonly string[]): object {
  return Object.fromEntries(Object.entries(data).filter(([key]) => keys.includes(key)));
}

/** Reports whether the key is itself a start-up option, such as `port`, and not a section that contains some. */
function isOption(key: string): boolean {
  return Object.values(options).some(({ file }) => file?.length === 1 && file[0] === key);
}

const allOptions: readonly Option<z.ZodType, unknown>[] = Object.values(options);

function settingsOf(reader: OptionReader, startup: YamlFile | undefined): Setting[] {
  return allOptions.map((option) => {
    const { value, from, location } = reader.take(option);
    const { file, line } = location;
    const place = from === "file" ? `${file}${line === undefined ? "" : `:${line}`}` : location.path;
    return {
      name: option.file?.join(".") ?? option.env ?? option.flag ?? "",
      value:
        from === "file" && option.file
          ? shown(startup, option.file, value, option.rule.quiet)
          : ((option.rule.quiet && value !== undefined ? withoutSecret(value) : value) ?? null),
      source: from === "default" ? "default" : place,
    };
  });
}

/**
 * Returns the value with its secrets replaced. A text is shown only if its field is known to hold no secret. A text
 * from variables is shown as the names of the variables.
 */
function shown(file: YamlFile | undefined, path: Path, value: unknown, isQuiet = false): unknown {
  if (Array.isArray(value))
    return value.map((entry, index) => shown(file, [...path, index], entry, isQuietAt(path, isQuiet)));
  if (typeof value === "object" && value !== null) {
    const quiet = isQuietAt(path, isQuiet);
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, shown(file, [...path, key], entry, quiet)]),
    );
  }
  if (typeof value !== "string") return value ?? null;
  const names = file?.variables(path) ?? [];
  if (names.length > 0) return names.map((name) => `\${${name}}`).join(" ");
  const schema = schemaAt(fileSchema, path);
  return !schema || isQuietAt(path, isQuiet) ? withoutSecret(value) : value;
}

/** Values below a field that may hold a secret may hold one, too: headers, and variables of a command. */
function isQuietAt(path: Path, isQuiet: boolean): boolean {
  if (isQuiet) return true;
  const schema = schemaAt(fileSchema, path);
  return schema !== undefined && (ruleOf(schema)?.quiet ?? false);
}

/**
 * Returns a URL with user and password redacted, and without query and fragment. Any other value is redacted as a
 * whole.
 */
function withoutSecret(value: unknown): unknown {
  if (typeof value !== "string" || !/^[a-z+]+:\/\//i.test(value) || !URL.canParse(value)) return redacted;
  const url = new URL(value);
  if (url.password !== "") url.password = "redacted";
  // Some mail services use one token as the name and the password.
  if (url.username !== "") url.username = "redacted";
  url.search = "";
  url.hash = "";
  return url.href;
}

interface Files {
  source(key: string): YamlFile | undefined;
  disk: YamlFile;
}

/**
 * Returns the paths of options that a flag or variable sets. Their values in the file are ignored, even after a
 * restart.
 */
function outrankedPaths(reader: OptionReader): ReadonlySet<string> {
  const outranked = allOptions.filter((option) => ["flag", "variable"].includes(reader.take(option).from));
  return new Set(outranked.flatMap(({ file }) => (file ? [renderPath(file)] : [])));
}

function differencesOf(current: object, disk: object, files: Files, outranked: ReadonlySet<string>): FileDifference[] {
  return Object.keys(fileSchema.shape).flatMap((key) =>
    leafDifferences([key], valueAt(current, [key]), valueAt(disk, [key]))
      .filter(({ path }) => !path.some((_, index) => outranked.has(renderPath(path.slice(0, index + 1)))))
      .map(({ path, before, after }) => ({
        path: renderPath(path),
        in_effect: shown(files.source(key), path, before),
        in_file: shown(files.disk, path, after),
        needs_restart: !reloadableKeys.includes(key),
      })),
  );
}

interface LeafDifference {
  path: Path;
  before: unknown;
  after: unknown;
}

function leafDifferences(path: Path, before: unknown, after: unknown): LeafDifference[] {
  if (Bun.deepEquals(before, after)) return [];
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) {
    return [{ path, before, after }];
  }
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) => {
    const part = Array.isArray(before) ? Number(key) : key;
    return leafDifferences([...path, part], Reflect.get(before, key), Reflect.get(after, key));
  });
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
