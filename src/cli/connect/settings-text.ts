// Reads, sets and removes settings in a client's configuration text and leaves everything else unchanged.
import { applyEdits, modify, type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import type { Setting } from "./clients.ts";
import { setInToml } from "./toml-text.ts";

/** Parses and edits configuration files of one format. */
export interface SettingsFormat {
  /** Parses the text. Throws a SettingsError that names the line. */
  parse(text: string): Record<string, unknown>;
  /** Returns the text with this value; an undefined value removes the setting. Comments and order stay. */
  set(text: string, path: readonly string[], value: unknown): string;
}

/** A file that cannot be parsed, or cannot be changed without losing something. */
export class SettingsError extends Error {}

const json: SettingsFormat = {
  parse(text) {
    const errors: ParseError[] = [];
    const { own } = withoutMark(text);
    const value: unknown = own.trim() === "" ? {} : parse(own, errors, { allowTrailingComma: true });
    const [first] = errors;
    if (first)
      throw new SettingsError(`line ${lineAt(own, first.offset)}: ${inWords(printParseErrorCode(first.error))}`);
    if (!isTable(value)) throw new SettingsError("line 1: it is no JSON object");
    return value;
  },
  set(text, path, value) {
    const formattingOptions = { insertSpaces: !/\n\t/.test(text), tabSize: 2, eol: lineEndOf(text) };
    const { mark, own } = withoutMark(text);
    const changed = applyEdits(own, modify(own, [...path], value, { formattingOptions }));
    return mark + (changed.endsWith("\n") ? changed : changed + lineEndOf(own));
  },
};

/** Separates the UTF-8 byte-order mark from a text. Some editors begin a file with this mark. */
function withoutMark(text: string): { mark: string; own: string } {
  const mark = text.startsWith("\ufeff") ? "\ufeff" : "";
  return { mark, own: text.slice(mark.length) };
}

/** Converts a name such as `CloseBraceExpected` to "close brace expected". */
function inWords(name: string): string {
  return name.replaceAll(/(?<!^)[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}

const toml: SettingsFormat = {
  parse(text) {
    try {
      return Bun.TOML.parse(text) as Record<string, unknown>;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new SettingsError(faultyLine(text) + reason.replace(/^TOML Parse error: /, ""));
    }
  },
  set(text, path, value) {
    // The text is edited with LF line ends, and then gets the line end that most of its lines had.
    const end = lineEndOf(text);
    const changed = setInToml(end === "\n" ? text : text.replaceAll("\r\n", "\n"), path, value);
    return end === "\n" ? changed : changed.replaceAll("\n", end);
  },
};

/** Maximum lines of a text in which the faulty line is searched, because the search parses the text once per line. */
const maxLines = 1_000;

/** Returns the first line that makes the text invalid, since the parser does not say which. */
function faultyLine(text: string): string {
  const lines = text.split("\n");
  if (lines.length > maxLines) return "";
  const isGood = (count: number) => {
    try {
      Bun.TOML.parse(lines.slice(0, count).join("\n"));
      return true;
    } catch {
      return false;
    }
  };
  // The search goes backwards, because the first lines of a multi-line value are invalid without the rest.
  let good = lines.length - 1;
  while (good > 0 && !isGood(good)) good--;
  return `line ${good + 1}: `;
}

/** Returns the line end that most lines have. */
function lineEndOf(text: string): "\n" | "\r\n" {
  const [all, windows] = [text.split("\n").length - 1, text.split("\r\n").length - 1];
  return 2 * windows > all ? "\r\n" : "\n";
}

export const settingsFormats: Readonly<Record<"json" | "toml", SettingsFormat>> = { json, toml };

/**
 * Returns the text with all settings set. Throws a SettingsError if the text cannot be parsed, or if anything but these
 * settings would change.
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

/** Returns the table without empty tables, because some formats write empty tables and others leave them out. */
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
