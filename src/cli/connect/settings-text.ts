// A client's configuration as text, in which settings are read, set and taken out with everything else left as it is.
import { applyEdits, modify, type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import type { Setting } from "./clients.ts";
import { setInToml } from "./toml-text.ts";

/** A format of such files. */
export interface SettingsFormat {
  /** Throws a SettingsError that names the line. */
  parse(text: string): Record<string, unknown>;
  /** The text with this value; undefined: without the setting. Comments and the order of everything else stay. */
  set(text: string, path: readonly string[], value: unknown): string;
}

/** A file that cannot be understood, or not be changed without a loss. */
export class SettingsError extends Error {}

const json: SettingsFormat = {
  parse(text) {
    const errors: ParseError[] = [];
    const value: unknown = text.trim() === "" ? {} : parse(text, errors, { allowTrailingComma: true });
    const [first] = errors;
    if (first) throw new SettingsError(`line ${lineAt(text, first.offset)}: ${printParseErrorCode(first.error)}`);
    if (!isTable(value)) throw new SettingsError("line 1: it is no JSON object");
    return value;
  },
  set(text, path, value) {
    const formattingOptions = { insertSpaces: !/\n\t/.test(text), tabSize: 2, eol: "\n" };
    const changed = applyEdits(text, modify(text, [...path], value, { formattingOptions }));
    return changed.endsWith("\n") ? changed : `${changed}\n`;
  },
};

const toml: SettingsFormat = {
  parse(text) {
    try {
      return Bun.TOML.parse(text) as Record<string, unknown>;
    } catch (error) {
      throw new SettingsError(error instanceof Error ? error.message : String(error));
    }
  },
  set: setInToml,
};

export const settingsFormats: Readonly<Record<"json" | "toml", SettingsFormat>> = { json, toml };

/**
 * The text with all settings. Throws a SettingsError where it cannot be understood, or where it would then say anything else
 * than before but for these.
 */
export function withSettings(format: SettingsFormat, text: string, settings: readonly Setting[]): string {
  const expected = format.parse(text);
  let changed = text;
  for (const { path, value } of settings) {
    if (Bun.deepEquals(valueAt(expected, path), value)) continue;
    changed = format.set(changed, path, value);
    putAt(expected, path, value);
  }
  if (isSaying(format, changed, expected)) return changed;
  throw new SettingsError("it is written in a way in which the change cannot be made safely");
}

function isSaying(format: SettingsFormat, text: string, expected: Record<string, unknown>): boolean {
  try {
    return Bun.deepEquals(filled(format.parse(text)), filled(expected));
  } catch {
    return false;
  }
}

export function valueAt(table: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => (isTable(value) ? value[name] : undefined), table);
}

function putAt(table: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = "", ...rest] = path;
  if (rest.length === 0) {
    if (value === undefined) delete table[name];
    else table[name] = value;
    return;
  }
  const inner = table[name];
  const next = isTable(inner) ? inner : {};
  if (next !== inner && value !== undefined) table[name] = next;
  putAt(next, rest, value);
}

/** Without tables that have nothing in them: in some formats these are written down, in others they are not. */
function filled(table: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(table).map(([name, value]) => [name, isTable(value) ? filled(value) : value] as const);
  return Object.fromEntries(entries.filter(([, value]) => !isTable(value) || Object.keys(value).length > 0));
}

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
