// Checks a value against a schema and says in one sentence which field is wrong, what it may be, and what it was.
import { z } from "zod";
import { GatewayError } from "../domain/errors.ts";
import { describeAllowed, describeValue, formatPath } from "./validation-text.ts";

/** The part of JSON Schema (2020-12) that our wire shapes come out as. */
export interface Node {
  $ref?: string;
  $defs?: Record<string, Node>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Node[];
  oneOf?: Node[];
  properties?: Record<string, Node>;
  required?: string[];
  additionalProperties?: Node | boolean;
  propertyNames?: Node;
  items?: Node;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

export type Path = readonly (string | number)[];

interface Failure {
  path: Path;
  /** Undefined: the field is missing. */
  found: unknown;
  allowed: readonly Node[];
  /** The name of the member at `path` is wrong, not its value. */
  inName?: boolean;
}

const compiled = new WeakMap<z.ZodType, Node[]>();

/**
 * Throws `invalid_request` for the first thing that is wrong; the value is never changed or copied. The schema is read
 * as JSON Schema rather than run by its library, which would go on to collect every error of a body made to have
 * millions.
 */
export function validate(schema: z.ZodType, value: unknown): void {
  let options = compiled.get(schema);
  if (!options) {
    const root = z.toJSONSchema(schema, { io: "input" }) as Node;
    options = alternatives(inline(root, root));
    compiled.set(schema, options);
  }
  const failure = check(options, value, []);
  if (failure) throw new GatewayError("invalid_request", explain(failure));
}

function explain({ path, found, allowed, inName }: Failure): string {
  const where = formatPath(path);
  const must = describeAllowed(allowed);
  if (inName) return `${where}: its names must each be ${must}.`;
  if (found === undefined) return `${where}: is required and must be ${must}.`;
  return `${where}: must be ${must} (got ${describeValue(found)}).`;
}

/** References are resolved once; our shapes do not recurse. */
function inline(node: Node, root: Node): Node {
  if (node.$ref) return inline(root.$defs?.[node.$ref.replace("#/$defs/", "")] ?? {}, root);
  const each = (nodes: Node[] | undefined) => nodes?.map((inner) => inline(inner, root));
  const { $defs: _, anyOf, oneOf, properties, items, additionalProperties, ...rest } = node;
  return {
    ...rest,
    ...(anyOf ? { anyOf: each(anyOf) ?? [] } : {}),
    ...(oneOf ? { oneOf: each(oneOf) ?? [] } : {}),
    ...(properties
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, inner]) => [name, inline(inner, root)]),
          ),
        }
      : {}),
    ...(items ? { items: inline(items, root) } : {}),
    ...(typeof additionalProperties === "object" ? { additionalProperties: inline(additionalProperties, root) } : {}),
  };
}

const alternativesOf = new WeakMap<Node, Node[]>();

/** A union of unions as one flat list; a list of types as one node for each. */
function alternatives(node: Node): Node[] {
  let known = alternativesOf.get(node);
  if (!known) {
    const { type } = node;
    const choices =
      node.anyOf ?? node.oneOf ?? (Array.isArray(type) ? type.map((one) => ({ ...node, type: one })) : undefined);
    known = choices ? choices.flatMap(alternatives) : [node];
    alternativesOf.set(node, known);
  }
  return known;
}

function check(options: readonly Node[], value: unknown, path: Path): Failure | undefined {
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
    node = options.find((option) => tag !== undefined && option.properties?.[tag]?.const === value[tag]);
    if (!node) {
      const tags = options.map((option) => option.properties?.[tag ?? ""]?.const);
      return { path: tag === undefined ? path : [...path, tag], found: value[tag ?? ""], allowed: [{ enum: tags }] };
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
    const failure = check(
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
    const failure = check(alternatives(properties[name] ?? {}), member, [...path, name]);
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
    const failure = check(options, value[i], [...path, i]);
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

/** The member that every option has with a value of its own. */
function tagOf(options: readonly Node[]): string | undefined {
  return Object.keys(options[0]?.properties ?? {}).find((name) =>
    options.every((option) => option.properties?.[name]?.const !== undefined),
  );
}

function fitsType({ type }: Node, actual: string, value: unknown): boolean {
  if (type === undefined || type === actual) return true;
  // Half a token is still a number where an integer is wanted: the message is about its value.
  return type === "integer" && actual === "number" && typeof value === "number";
}

function fitsValue(node: Node, value: unknown): boolean {
  if (node.const !== undefined) return value === node.const;
  if (node.enum) return node.enum.includes(value);
  if (typeof value === "number") {
    if (node.type === "integer" && !Number.isInteger(value)) return false;
    if (node.exclusiveMinimum !== undefined && value <= node.exclusiveMinimum) return false;
    return value >= (node.minimum ?? Number.NEGATIVE_INFINITY) && value <= (node.maximum ?? Number.POSITIVE_INFINITY);
  }
  if (typeof value === "string") {
    if (value.length < (node.minLength ?? 0) || value.length > (node.maxLength ?? Number.POSITIVE_INFINITY))
      return false;
    return node.pattern === undefined || new RegExp(node.pattern).test(value);
  }
  return true;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
