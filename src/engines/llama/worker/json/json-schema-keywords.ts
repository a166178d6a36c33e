// Lists the keywords of JSON Schema (2020-12) by whether the grammar can enforce them.
import type { JsonObject } from "../request/fields.ts";
import { invalid } from "../request/request-error.ts";

/** The keywords that the grammar enforces. Annotations such as `title` are in none of these lists. */
export const enforcedKeywords = [
  "$ref",
  "allOf",
  "anyOf",
  "oneOf",
  "const",
  "enum",
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "prefixItems",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "format",
] as const;

export type EnforcedKeyword = (typeof enforcedKeywords)[number];

/**
 * The keywords that are always refused, because no grammar can express them and ignoring them would change what
 * is valid.
 */
export const unsupportedKeywords = [
  "not",
  "if",
  "then",
  "else",
  "patternProperties",
  "dependentSchemas",
  "dependencies",
  "unevaluatedProperties",
  "unevaluatedItems",
  "$dynamicRef",
  "$recursiveRef",
] as const;

/** The keywords that only restrict values further. In strict mode they are refused; otherwise they are not enforced. */
export const unenforcedKeywords = [
  "pattern",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "uniqueItems",
  "contains",
  "minContains",
  "maxContains",
  "minProperties",
  "maxProperties",
  "propertyNames",
  "dependentRequired",
] as const;

export interface TextFormat {
  /** The text without its quotes, in GBNF. */
  grammar: string;
  /** The shortest text, in characters. */
  shortest: number;
  longest: number;
}

/** The values of `format` that the grammar enforces. Others are ignored. */
export const textFormats: ReadonlyMap<unknown, TextFormat> = new Map([
  ["date", { grammar: "date", shortest: 10, longest: 10 }],
  ["time", { grammar: "time", shortest: 9, longest: 21 }],
  ["date-time", { grammar: 'date "T" time', shortest: 20, longest: 32 }],
  ["uuid", { grammar: "uuid", shortest: 36, longest: 36 }],
]);

const typeNames = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;

export type TypeName = (typeof typeNames)[number];

/** Returns the enforced keywords in a schema. */
export function constraints(schema: JsonObject): EnforcedKeyword[] {
  return enforcedKeywords.filter(
    (keyword) => schema[keyword] !== undefined && (keyword !== "format" || textFormats.has(schema["format"])),
  );
}

/**
 * Returns the value of `type` as a list without duplicates. Throws a RequestError (400) for an unknown type.
 * `where` names the keyword in the message.
 */
export function readTypes(type: unknown, where: string): TypeName[] {
  const names: unknown[] = Array.isArray(type) ? type : [type];
  const found = typeNames.filter((name) => names.includes(name));
  const known: readonly unknown[] = typeNames;
  if (names.length <= typeNames.length && found.length > 0 && names.every((name) => known.includes(name))) return found;
  const list = typeNames.map((name) => `"${name}"`).join(", ");
  throw invalid(`${where} must be one of ${list}, or an array of 1 to ${typeNames.length} of them.`);
}

export function hasType(value: unknown, type: TypeName): boolean {
  if (value === null) return type === "null";
  if (Array.isArray(value)) return type === "array";
  if (type === "integer") return Number.isInteger(value);
  return type === typeof value;
}

/** Returns the type that the other keywords imply if a schema has no `type`. */
export function impliedType(schema: JsonObject): TypeName | undefined {
  const has = (...keywords: EnforcedKeyword[]) => keywords.some((keyword) => schema[keyword] !== undefined);
  if (has("properties", "required", "additionalProperties")) return "object";
  if (has("items", "prefixItems", "minItems", "maxItems")) return "array";
  return has("minLength", "maxLength") || textFormats.has(schema["format"]) ? "string" : undefined;
}

/** Throws a RequestError (400) that names the first keyword that must be refused. */
export function refuseUnsupported(schema: JsonObject, path: string, strict: boolean): void {
  for (const keyword of unsupportedKeywords) {
    if (schema[keyword] !== undefined) throw invalid(`${path}.${keyword}: this keyword cannot be enforced. Remove it.`);
  }
  if (!strict) return;
  for (const keyword of unenforcedKeywords) {
    if (schema[keyword] === undefined || isVacuous(keyword, schema[keyword])) continue;
    throw invalid(`${path}.${keyword}: this keyword cannot be enforced. Remove it, or send "strict": false.`);
  }
}

/** Throws a RequestError (400) for an enforced keyword that would have no effect beside `keyword`. */
export function refuseBeside(schema: JsonObject, keyword: string, allowed: readonly string[], path: string): void {
  const other = constraints(schema).find((found) => found !== keyword && !allowed.includes(found));
  if (other === undefined) return;
  throw invalid(`${path}.${other} cannot be enforced beside ${keyword}. Remove one of them, or write them as one.`);
}

/**
 * Reports whether a keyword restricts nothing, such as the limits of safe integers, which schema libraries add
 * to any integer.
 */
function isVacuous(keyword: string, value: unknown): boolean {
  // Older drafts write `exclusiveMinimum` and `exclusiveMaximum` as booleans.
  if (value === false) return keyword === "uniqueItems" || keyword.startsWith("exclusive");
  if (typeof value !== "number") return false;
  if (keyword === "minimum") return value <= Number.MIN_SAFE_INTEGER;
  return keyword === "maximum" && value >= Number.MAX_SAFE_INTEGER;
}
