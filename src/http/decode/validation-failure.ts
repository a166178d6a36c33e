// Finds what is wrong with a value that does not fit its schema: the first failure, where it stands and what may stand there.
import { alternatives, fitsType, fitsValue, type Node, tagOf, typeOf } from "./json-schema.ts";

export type Path = readonly (string | number)[];

export interface Failure {
  path: Path;
  /** Undefined: the field is missing. */
  found: unknown;
  allowed: readonly Node[];
  /** The name of the member at `path` is wrong, not its value. */
  inName?: boolean;
}

/** Undefined where it fits. Ends at the first failure, and copies nothing of the value. */
export function findFailure(options: readonly Node[], value: unknown, path: Path = []): Failure | undefined {
  const type = typeOf(value);
  const fitting = options.filter((option) => fitsType(option, type, value));
  const [first] = fitting;
  if (!first) return { path, found: value, allowed: options };
  if (type === "object") return checkObject(fitting, value as Record<string, unknown>, path);
  if (type === "array") return checkArray(byFirstItem(fitting, value as unknown[]), value as unknown[], path);
  return fitting.some((option) => fitsValue(option, value)) ? undefined : { path, found: value, allowed: options };
}

function checkObject(options: readonly Node[], value: Record<string, unknown>, path: Path): Failure | undefined {
  const [first] = options;
  let node = first;
  if (options.length > 1) {
    const tag = tagOf(options);
    if (tag === undefined) return { path, found: value, allowed: options };
    const tags = options.map(({ properties }) => properties?.[tag] ?? {});
    const found = value[tag];
    const others = tags.findIndex((one) => one.const === undefined);
    node = options[tags.findIndex((one) => one.const === found && found !== undefined)];
    if (typeof found === "string") node ??= options[others];
    if (!node) {
      const known = tags.filter((one) => one.const !== undefined).map((one) => one.const);
      return { path: [...path, tag], found, allowed: [{ enum: known }, ...tags.slice(others, others + 1)] };
    }
  }
  if (!node) return undefined;
  const { properties = {}, additionalProperties, propertyNames } = node;
  for (const name of node.required ?? []) {
    if (value[name] === undefined)
      return { path: [...path, name], found: undefined, allowed: alternatives(properties[name] ?? {}) };
  }
  if (!propertyNames && typeof additionalProperties !== "object") return checkMembers(properties, value, path);
  const others = typeof additionalProperties === "object" ? alternatives(additionalProperties) : [{}];
  for (const name in value) {
    if (propertyNames && !fitsValue(propertyNames, name)) {
      return { path, found: name, allowed: [propertyNames], inName: true };
    }
    const failure = findFailure(
      Object.hasOwn(properties, name) ? alternatives(properties[name] ?? {}) : others,
      value[name],
      [...path, name],
    );
    if (failure) return failure;
  }
  return undefined;
}

function checkMembers(
  properties: Record<string, Node>,
  value: Record<string, unknown>,
  path: Path,
): Failure | undefined {
  for (const name in properties) {
    if (!Object.hasOwn(value, name)) continue;
    const member = value[name];
    const failure = findFailure(alternatives(properties[name] ?? {}), member, [...path, name]);
    if (failure) return failure;
  }
  return undefined;
}

function checkArray(node: Node, value: readonly unknown[], path: Path): Failure | undefined {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, items } = node;
  if (value.length < minItems || value.length > maxItems) return { path, found: value, allowed: [node] };
  if (!items) return undefined;
  const options = alternatives(items);
  for (let i = 0; i < value.length; i++) {
    const failure = findFailure(options, value[i], [...path, i]);
    if (failure) return failure;
  }
  return undefined;
}

/** Several kinds of arrays are told apart by their first item. */
function byFirstItem(options: readonly Node[], value: readonly unknown[]): Node {
  const type = typeOf(value[0]);
  const match = options.find((option) =>
    alternatives(option.items ?? {}).some((item) => fitsType(item, type, value[0])),
  );
  return match ?? options[0] ?? {};
}
