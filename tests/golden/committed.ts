// The committed bytes of records that leave the process or outlive it: one record a line, behind its name.
import { expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Records by name, or the lines of a sequence. */
export type Records = Readonly<Record<string, string | Uint8Array>> | readonly string[];

const updating = process.env["UPDATE_GOLDEN"] === "1";

/**
 * Fails unless today's code wrote exactly the records of `tests/golden/<name>.txt`. A difference means that an earlier
 * version, or another process, can no longer read what this one writes: change the code, not the file. UPDATE_GOLDEN=1
 * rewrites the file for a new record, or for a change of the format that earlier versions understand.
 */
export function expectCommitted(name: string, records: Records): void {
  const lines = Array.isArray(records)
    ? records.map((bytes: string) => `${escaped(bytes)}\n`)
    : Object.entries(records as Record<string, string>).map(([record, bytes]) => `${record}: ${escaped(bytes)}\n`);
  const text = lines.join("");
  if (updating) writeFileSync(fileOf(name), text);
  if (!existsSync(fileOf(name))) throw new Error(`${name}.txt is missing: write it with UPDATE_GOLDEN=1.`);
  expect(text).toBe(readFileSync(fileOf(name), "utf8"));
}

/** Returns the bytes of every record of the file, by name. */
export function committed(name: string): Record<string, Buffer> {
  if (!existsSync(fileOf(name))) return {};
  const lines = readFileSync(fileOf(name), "utf8").split("\n").slice(0, -1);
  return Object.fromEntries(
    lines.map((line) => {
      const end = line.indexOf(": ");
      return [line.slice(0, end), unescaped(line.slice(end + 2))];
    }),
  );
}

function fileOf(name: string): string {
  return join(import.meta.dir, `${name}.txt`);
}

/** Bytes outside of printable ASCII become `\xNN`, as does a backslash before an `x`. */
function escaped(bytes: string | Uint8Array): string {
  const text = Buffer.from(bytes as Uint8Array).toString("latin1");
  return text.replace(/[^ -~]|\\(?=x)/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

function unescaped(text: string): Buffer {
  const bytes = text.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1");
}
