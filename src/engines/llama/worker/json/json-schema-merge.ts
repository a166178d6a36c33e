// Merges JSON Schemas that must all hold into one equivalent schema, or throws an error that says why it cannot.
import { isObject, type JsonObject } from "../request/fields.ts";
import { invalid } from "../request/request-error.ts";
import {
  enforcedKeywords,
  readTypes,
  type TypeName,
  unenforcedKeywords,
  unsupportedKeywords,
} from "./json-schema-keywords.ts";

/**
 * Merges schemas that must all hold. Throws a RequestError (400) with the path and the keyword that cannot be
 * merged.
 */
export function mergeSchemas(parts: readonly JsonObject[], path: string): JsonObject {
  refuseClosedParts(parts, path);
  refuseSplitArrays(parts, path);
  if (parts.some((part) => part["nullable"] === true)) throw unmergeable(path, "nullable");
  const merged: Record<string, unknown> = {};
  for (const keyword of [...enforcedKeywords, ...unsupportedKeywords, ...unenforcedKeywords]) {
    const values = parts.map((part) => part[keyword]).filter((value) => value !== undefined);
    if (values.length > 0) merged[keyword] = values.length === 1 ? values[0] : combine(keyword, values, path);
  }
  return merged;
}

/** Returns the work units of merging a schema: the number of its parts. */
export function mergeWork({ properties, required, allOf }: JsonObject): number {
  const lists = [required, allOf].map((list) => (Array.isArray(list) ? list.length : 0));
  return lists.reduce((sum, length) => sum + length, 1 + (isObject(properties) ? Object.keys(properties).length : 0));
}

function combine(keyword: string, values: readonly unknown[], path: string): unknown {
  const kept = values.filter((value) => keyword !== "additionalProperties" || value !== true);
  switch (keyword) {
    case "properties":
      return mergeProperties(values, `${path}.properties`);
    case "required":
    case "allOf":
      if (!values.every(Array.isArray)) throw invalid(`${path}.${keyword} must be an array.`);
      return values.flat();
    case "type":
      return values
        .map((type) => readTypes(type, `${path}.type`))
        .reduce((one, other) => commonTypes(one, other, path));
    default: {
      const enforced: readonly string[] = enforcedKeywords;
      // Only enforced keywords must be equal, because others are ignored anyway. Objects are compared by identity,
      // because comparing large objects by value takes long.
      if (enforced.includes(keyword) && kept.some((value) => value !== kept[0])) throw unmergeable(path, keyword);
      return kept.length === 0 ? values[0] : kept[0];
    }
  }
}

function mergeProperties(values: readonly unknown[], where: string): JsonObject {
  const schemas = new Map<string, unknown[]>();
  for (const properties of values) {
    if (!isObject(properties)) throw invalid(`${where} must be an object.`);
    for (const [name, schema] of Object.entries(properties)) {
      const others = schemas.get(name);
      if (others === undefined) schemas.set(name, [schema]);
      else others.push(schema);
    }
  }
  const entries = schemas.entries().map(([name, all]) => [name, all.length === 1 ? all[0] : { allOf: all }]);
  return Object.fromEntries(entries);
}

function commonTypes(one: readonly TypeName[], other: readonly TypeName[], path: string): TypeName[] {
  const within = (type: TypeName, types: readonly TypeName[]) =>
    types.includes(type) || (type === "integer" && types.includes("number"));
  const common = [...one.filter((type) => within(type, other)), ...other.filter((type) => within(type, one))];
  if (common.length === 0) throw invalid(`${path}.type: no value can be of all these types.`);
  return [...new Set(common)];
}

/**
 * Refuses to merge closed objects. `additionalProperties` refers to the properties of the same schema, but after a
 * merge it would refer to those of all schemas.
 */
function refuseClosedParts(parts: readonly JsonObject[], path: string): void {
  const names = parts.map((part) => new Set(isObject(part["properties"]) ? Object.keys(part["properties"]) : []));
  const all = new Set(names.flatMap((some) => [...some]));
  for (const [index, { additionalProperties = true }] of parts.entries()) {
    if (additionalProperties === true) continue;
    for (const name of all) if (!names[index]?.has(name)) throw unmergeable(path, "additionalProperties");
  }
}

/**
 * Refuses to merge arrays with `prefixItems`. `items` applies to the elements after the `prefixItems` of the same
 * schema, so a merge would change its meaning.
 */
function refuseSplitArrays(parts: readonly JsonObject[], path: string): void {
  const arrays = parts.filter(({ items, prefixItems }) => items !== undefined || prefixItems !== undefined);
  if (arrays.length > 1 && arrays.some(({ prefixItems }) => prefixItems !== undefined)) {
    throw unmergeable(path, "prefixItems");
  }
}

function unmergeable(path: string, keyword: string): Error {
  return invalid(
    `${path}: "${keyword}" here and other parts of the schema must both hold, and cannot be merged. ` +
      "Write them as one schema.",
  );
}
