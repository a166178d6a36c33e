// Takes each start-up option from flags, environment, file or default, in this order, and records where it came from.
import type * as z from "zod";
import { nearest } from "../base/text/nearest.ts";
import { type Env, readNumber, readSwitch } from "./formats.ts";
import { flagAttribute, flagName, type Option, options } from "./options.ts";
import { valueAt } from "./paths.ts";
import { locationOutsideFile, type Problem, renderValue, type SourceLocation } from "./problems.ts";
import type { YamlFile } from "./read-yaml.ts";

/** Flags by Commander's names, such as `dataDir`, or `demo` for `--no-demo`. A repeatable flag is a list. */
export type Flags = Readonly<Record<string, unknown>>;

export type SourceKind = "flag" | "variable" | "file" | "default";

interface Given {
  value: unknown;
  from: SourceKind;
  location: SourceLocation;
}

export interface Taken<T> extends Given {
  value: T;
  /** False if the given value is invalid; `value` is then the default. */
  valid: boolean;
}

export interface Sources {
  flags: Flags;
  env: Env;
  file: YamlFile | undefined;
}

/** Reads options one by one. Collects the problems of flags and variables. */
export class OptionReader {
  readonly problems: Problem[] = [];
  readonly #sources: Sources;

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  take<S extends z.ZodType, D>(option: Option<S, D>): Taken<z.output<S> | D> {
    const given = this.#fromFlag(option) ?? this.#fromVariable(option) ?? this.#fromFile(option);
    if (given === undefined)
      return { value: option.default, from: "default", location: missingLocation(option), valid: true };
    const result = option.schema.safeParse(given.value);
    if (result.success) return { ...given, value: result.data, valid: true };
    // The file was validated as a whole, and its problems are already reported with their lines.
    if (given.from !== "file") this.problems.push(invalid(option, given, result.error.issues[0]));
    return { ...given, value: option.default, valid: false };
  }

  #fromFlag(option: Option<z.ZodType, unknown>): Given | undefined {
    if (option.flag === undefined) return undefined;
    const given = this.#sources.flags[flagAttribute(option.flag)];
    const location = locationOutsideFile(flagName(option.flag));
    // Commander sets true for a `--no-…` flag that was not given.
    if (given === undefined || (option.kind === "switch" && given === true)) return undefined;
    const value = typeof given === "string" ? readText(option, given) : given;
    return { value, from: "flag", location };
  }

  #fromVariable(option: Option<z.ZodType, unknown>): Given | undefined {
    if (option.env === undefined) return undefined;
    const text = this.#sources.env[option.env];
    // An empty variable counts as unset, because scripts and compose files leave variables empty. An empty secret is
    // reported, because it is a serious mistake.
    if (text === undefined || (text.trim() === "" && option !== options.secret)) return undefined;
    return { value: readText(option, text), from: "variable", location: locationOutsideFile(option.env) };
  }

  #fromFile(option: Option<z.ZodType, unknown>): Given | undefined {
    const file = this.#sources.file;
    if (option.file === undefined || file === undefined) return undefined;
    const value = valueAt(file.data, option.file);
    return value === undefined ? undefined : { value, from: "file", location: file.locate(option.file) };
  }
}

/**
 * Parses the text by the option's kind. If parsing fails, returns the text unchanged, so that the option's schema
 * refuses it.
 */
function readText(option: Option<z.ZodType, unknown>, text: string): unknown {
  if (option.kind === "number") return readNumber(text) ?? text;
  if (option.kind === "switch") return readSwitch(text) ?? text;
  if (option.kind === "repeated") return [text];
  if (option.kind !== "list") return option === options.secret ? text.trim() : text;
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function missingLocation(option: Option<z.ZodType, unknown>): SourceLocation {
  return locationOutsideFile(option.file?.join(".") ?? option.env ?? "");
}

function invalid(option: Option<z.ZodType, unknown>, given: Given, issue: z.core.$ZodIssue | undefined): Problem {
  const { rule, env } = option;
  const value = valueAt(given.value, issue?.path ?? []);
  const got = rule.quiet ? "" : ` (got ${renderValue(value)})`;
  const message = `must be ${rule.must}${got}`;
  // Kubernetes sets HEADRACE_PORT to an address if a service is named headrace.
  const fromKubernetes = env === "HEADRACE_PORT" && given.from === "variable" && String(value).startsWith("tcp://");
  const fix = fromKubernetes ? "Set enableServiceLinks: false in the pod, or rename the service." : rule.fix;
  return { ...given.location, message, fix };
}

/** Returns warnings for variables whose names look like misspelled names of ours. */
export function variableWarnings(env: Env): string[] {
  const known = Object.values(options).flatMap(({ env, isSecret }) =>
    env === undefined ? [] : [env, ...(isSecret ? [`${env}_FILE`] : [])],
  );
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith("HEADRACE_") || known.includes(name)) return [];
    const meant = nearest(
      name.slice("HEADRACE_".length),
      known.map((one) => one.slice("HEADRACE_".length)),
    );
    return meant === undefined ? [] : [`${name}: is not a known variable; did you mean HEADRACE_${meant}?`];
  });
}
