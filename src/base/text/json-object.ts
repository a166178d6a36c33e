// Parses JSON that another parser reads once more: what the two could read differently is refused.
import { countNames, findRepeatedName } from "./json-names.ts";
import { formatPath, type JsonPath } from "./json-path.ts";
import { type JsonLimits, JsonTextError, type Members, scanObject } from "./json-text.ts";

export interface ParsedJson {
  readonly members: Members;
  readonly value: unknown;
}

/** A number of the field is beyond the range of a double. */
export class JsonNumberError extends JsonTextError {
  declare readonly field: string;
}

/**
 * Parses the text within its limits. Throws a JsonTextError for too much of it, for a name that an object has twice at any
 * depth (RFC 7493, 2.3) and for a number beyond the range of a double, and whatever JSON.parse throws for other faults.
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

/** Returns the path of the first number beyond the range of a double. */
function findInfinity(value: unknown, path: JsonPath = []): JsonPath | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : path;
  if (typeof value !== "object" || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [name, member] of Object.entries(value)) {
    const found = findInfinity(member, [...path, isList ? Number(name) : name]);
    if (found) return found;
  }
  return undefined;
}
