// Checks a value against a schema and says in one sentence which field is wrong, what it may be, and what it was.
import { z } from "zod";
import { GatewayError } from "../domain/errors.ts";

type Path = readonly PropertyKey[];

/** The part of JSON Schema that our wire shapes come out as. */
interface Node {
  $ref?: string;
  $defs?: Record<string, Node>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Node[];
  oneOf?: Node[];
  properties?: Record<string, Node>;
  additionalProperties?: Node | boolean;
  items?: Node;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

const jsonSchemas = new WeakMap<z.ZodType, Node>();

/** Throws `invalid_request` for the first thing that is wrong. The value itself is never changed. */
export function validate(schema: z.ZodType, value: unknown): void {
  const result = schema.safeParse(value);
  if (result.success) return;
  const issue = result.error.issues[0];
  const { path, custom } = issue ? deepest(issue, []) : { path: [], custom: undefined };
  throw new GatewayError("invalid_request", explain(schema, value, path, custom));
}

/** Of the branches of a union, the one that got furthest is the one that was meant. */
function deepest(issue: z.core.$ZodIssue, prefix: Path): { path: Path; custom: string | undefined } {
  const path = [...prefix, ...issue.path];
  let best = { path: path as Path, custom: issue.code === "custom" ? issue.message : undefined };
  if (issue.code === "invalid_union") {
    for (const branch of issue.errors) {
      const first = branch[0];
      if (!first) continue;
      const inner = deepest(first, path);
      if (inner.path.length > best.path.length) best = inner;
    }
  }
  return best;
}

function explain(schema: z.ZodType, value: unknown, path: Path, custom: string | undefined): string {
  const where = formatPath(path);
  if (custom !== undefined) return `${where}: ${custom}`;
  let root = jsonSchemas.get(schema);
  if (!root) {
    root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Node;
    jsonSchemas.set(schema, root);
  }
  const { node, found } = walk(root, value, path);
  const allowed = node ? describeAllowed(node, root) : "valid";
  if (found === undefined) return `${where}: is required and must be ${allowed}.`;
  return `${where}: must be ${allowed} (got ${describeValue(found)}).`;
}

/** Follows a path through schema and value side by side; at a union, the branch that fits the value. */
function walk(root: Node, value: unknown, path: Path): { node: Node | undefined; found: unknown } {
  let node: Node | undefined = root;
  let found = value;
  for (const step of path) {
    node = node && fitting(node, found, root);
    found = typeof found === "object" && found !== null ? (found as Record<PropertyKey, unknown>)[step] : undefined;
    if (typeof step === "number") node = node?.items;
    else
      node =
        node?.properties?.[String(step)] ??
        (typeof node?.additionalProperties === "object" ? node.additionalProperties : undefined);
  }
  return { node, found };
}

function resolve(node: Node, root: Node): Node {
  if (!node.$ref) return node;
  return root.$defs?.[node.$ref.replace("#/$defs/", "")] ?? {};
}

function branches(node: Node, root: Node): Node[] {
  const resolved = resolve(node, root);
  const choices = resolved.anyOf ?? resolved.oneOf;
  return choices ? choices.flatMap((choice) => branches(choice, root)) : [resolved];
}

function fitting(node: Node, value: unknown, root: Node): Node | undefined {
  const options = branches(node, root);
  if (options.length === 1) return options[0];
  const sameType = options.filter((option) => option.type === typeOf(value));
  const sameTag = sameType.find((option) =>
    Object.entries(option.properties ?? {}).some(
      ([name, property]) => property.const !== undefined && property.const === (value as Record<string, unknown>)[name],
    ),
  );
  if (sameTag) return sameTag;
  // An unknown tag: the tag's own description has to name all of them.
  const tags = sameType.flatMap((option) =>
    Object.entries(option.properties ?? {}).filter(([, p]) => p.const !== undefined),
  );
  const name = tags[0]?.[0];
  if (sameType.length > 1 && name)
    return { properties: { [name]: { enum: tags.map(([, property]) => property.const) } } };
  return sameType[0] ?? options[0];
}

function describeAllowed(node: Node, root: Node): string {
  const options = branches(node, root)
    .filter((option) => option.type !== "null")
    .map(describeOne);
  return [...new Set(options)].join(" or ");
}

function describeOne(node: Node): string {
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum) return `one of ${node.enum.map((entry) => JSON.stringify(entry)).join(", ")}`;
  const type = Array.isArray(node.type) ? node.type.find((name) => name !== "null") : node.type;
  if (type === "string") return `a string${range(node.minLength, node.maxLength, "character")}`;
  if (type === "array") return `an array${range(node.minItems, node.maxItems, "item")}`;
  if (type === "boolean") return "true or false";
  if (type === "object") return "an object";
  if (type === "number" || type === "integer")
    return `${type === "integer" ? "an integer" : "a number"}${numberRange(node)}`;
  return "valid";
}

function range(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return ` of ${least} to ${most} ${unit}s`;
  if (most !== undefined) return ` of at most ${most} ${unit}s`;
  return least === undefined || least === 0 ? "" : ` of at least ${least} ${unit}${least === 1 ? "" : "s"}`;
}

function numberRange(node: Node): string {
  const most = node.maximum === Number.MAX_SAFE_INTEGER ? undefined : node.maximum;
  const least = node.minimum === Number.MIN_SAFE_INTEGER ? undefined : node.minimum;
  if (node.exclusiveMinimum !== undefined)
    return ` above ${node.exclusiveMinimum}${most === undefined ? "" : ` and up to ${most}`}`;
  if (least !== undefined && most !== undefined) return ` from ${least} to ${most}`;
  if (most !== undefined) return ` of at most ${most}`;
  return least === undefined ? "" : ` of at least ${least}`;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Numbers and the like as they are; of texts, arrays and objects only what they are, as they may be private. */
function describeValue(value: unknown): string {
  if (typeof value === "string") return value === "" ? "an empty string" : `a string of ${value.length} characters`;
  if (Array.isArray(value)) return `an array of ${value.length} items`;
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function formatPath(path: Path): string {
  let text = "";
  for (const step of path) text += typeof step === "number" ? `[${step}]` : `${text === "" ? "" : "."}${String(step)}`;
  return text === "" ? "body" : text;
}
