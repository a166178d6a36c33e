// Parses JSON that another parser will read again, and refuses anything that the two parsers could read differently.
import { countNames, findRepeatedName } from "./json-names.ts";
import { formatPath, type JsonPath } from "./json-path.ts";
import { type JsonLimits, JsonTextError, type Members, scanObject } from "./json-text.ts";

export interface ParsedJson {
  readonly members: Members;
  readonly value: unknown;
}

/** Thrown if a number in the field exceeds the range of a double. */
export class JsonNumberError extends JsonTextError {
  declare readonly field: string;
}

/**
 * Parses the text within its limits. Throws a JsonTextError if it exceeds them, if an object at any depth repeats a
 * name (RFC 7493, 2.3) or if a number exceeds the range of a double. For other faults it throws what JSON.parse throws.
 */
export function parseOnceRead(text: string, limits: JsonLimits): ParsedJson {
  const members = scanObject(text, limits);
  const value: unknown = JSON.parse(text);
  const names = countNames(value);
  if (names === members.names) return { members, value };
  if (Number.isNaN(names)) {
    const field = formatPath(findInfinity(value) ?? []);
    throw new JsonNumberError(`the number of the field \`${field}\` is too large`, field);
  }
  const field = formatPath(findRepeatedName(text) ?? []);
  throw new JsonTextError(`the field \`${field}\` appears twice; send it once`, field);
}

/** Returns the path of the first number that exceeds the range of a double. */
function findInfinity(value: unknown): JsonPath | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : [];
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found = findInfinity(value[i]);
      if (found) return [i, ...found];
    }
    return undefined;
  }
  for (const [name, member] of Object.entries(value)) {
    const found = findInfinity(member);
    if (found) return [name, ...found];
  }
  return undefined;
}
