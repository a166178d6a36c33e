// Finds names that occur more than once in an object. JSON.parse takes the last one without an error, and another
// parser may take the first.
import type { JsonPath } from "./json-path.ts";
import { endOfString } from "./json-text.ts";

/**
 * Counts the names in all objects of a parsed value. The JSON text has more names than this if and only if an object
 * repeats a name. Returns NaN if a number exceeds the range of a double: other parsers may refuse it, or read infinity
 * or the largest number.
 */
export function countNames(value: unknown): number {
  if (typeof value === "number") return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) count += countNames(value[i]);
    return count;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members) count += 1 + countNames(members[name]);
  return count;
}

/** An object or array that is still open. */
interface OpenValue {
  /** Undefined for an array. */
  readonly names: Set<string> | undefined;
  /** The member or index of the value being read. */
  step: string | number;
  nameIsNext: boolean;
}

/** Returns the path of the first repeated name in a text that JSON.parse accepts. */
export function findRepeatedName(text: string): JsonPath | undefined {
  const open: OpenValue[] = [];
  for (let i = 0; i < text.length; i++) {
    const inner = open.at(-1);
    switch (text.charAt(i)) {
      case '"': {
        const end = endOfString(text, i);
        if (inner?.names !== undefined && inner.nameIsNext) {
          const name = String(JSON.parse(text.slice(i, end)));
          inner.step = name;
          inner.nameIsNext = false;
          if (inner.names.has(name)) return open.map(({ step }) => step);
          inner.names.add(name);
        }
        i = end - 1;
        break;
      }
      case ",":
        if (typeof inner?.step === "number") inner.step++;
        else if (inner) inner.nameIsNext = true;
        break;
      case "{":
        open.push({ names: new Set(), step: "", nameIsNext: true });
        break;
      case "[":
        open.push({ names: undefined, step: 0, nameIsNext: false });
        break;
      case "}":
      case "]":
        open.pop();
        break;
    }
  }
  return undefined;
}
