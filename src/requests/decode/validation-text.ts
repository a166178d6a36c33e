// Describes, for an error message, which values a field allows and which value it has.
import { modelPatternPattern } from "../../domain/models/model-patterns.ts";
import { toolEntryPattern } from "../../domain/tools/tool-access.ts";
import type { Node } from "./json-schema.ts";

/**
 * Describes the allowed values, such as `a number from 0 to 2` or `one of "a", "b"`. Several alternatives are joined
 * with "or".
 */
export function describeAllowed(options: readonly Node[]): string {
  const texts = options.filter((option) => option.type !== "null").map(describeOne);
  return [...new Set(texts)].join(" or ");
}

/**
 * Returns numbers and literals as they are. For texts, arrays and objects, which may be private, only the type is
 * described. The length of a text is added if `allowed` contains a string.
 */
export function describeValue(value: unknown, allowed: readonly Node[]): string {
  if (typeof value === "string") {
    if (value === "") return "an empty string";
    const isLength = allowed.some(({ type, enum: values }) => type === "string" && !values);
    return isLength ? `a string of ${counted(value.length, "character")}` : "a text in quotes";
  }
  if (Array.isArray(value)) return `an array of ${counted(value.length, "item")}`;
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function describeOne(node: Node): string {
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum) return `one of ${node.enum.map((entry) => JSON.stringify(entry)).join(", ")}`;
  switch (node.type) {
    case "string":
      if (node.pattern === tokenIdPattern) return "a token id, as digits";
      return `a string${range(node.minLength, node.maxLength, "character")}${formOf(node)}`;
    case "array":
      return `an array${describeItems(node.items)}${range(node.minItems, node.maxItems, "item")}`;
    case "boolean":
      return "true or false";
    case "object":
      return "an object";
    case "integer":
      return `an integer${numberRange(node)}`;
    case "number":
      return `a number${numberRange(node)}`;
    default:
      return "a valid value";
  }
}

/** The pattern of the member names in `logit_bias`. */
const tokenIdPattern = "^\\d{1,9}$";

/** Descriptions of patterns that clients often fail to match. */
const forms: ReadonlyMap<string, string> = new Map([
  [modelPatternPattern.source, "that is a model id, or a prefix of one ending in `*`"],
  [toolEntryPattern.source, "that is `server`, `server/tool`, or a prefix of either ending in `*`"],
]);

/**
 * Describes the pattern. Without the description, a client would not understand why a string of an allowed length is
 * refused.
 */
function formOf({ pattern }: Node): string {
  return pattern === undefined ? "" : ` ${forms.get(pattern) ?? `that matches ${pattern}`}`;
}

/** Describes the type of the items, but only if arrays could not be distinguished otherwise. */
function describeItems(items: Node | undefined): string {
  const type = items?.type;
  return type === "string" || type === "integer" || type === "array" ? ` of ${type}s` : "";
}

function range(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return ` of ${least} to ${most} ${unit}s`;
  if (most !== undefined) return ` of at most ${most} ${unit}s`;
  return least === undefined || least === 0 ? "" : ` of at least ${least} ${unit}${least === 1 ? "" : "s"}`;
}

function numberRange({ minimum, maximum, exclusiveMinimum }: Node): string {
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const least = minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  if (exclusiveMinimum !== undefined)
    return ` above ${exclusiveMinimum}${most === undefined ? "" : ` and up to ${most}`}`;
  if (least !== undefined && most !== undefined) return ` from ${least} to ${most}`;
  if (most !== undefined) return ` of at most ${most}`;
  return least === undefined ? "" : ` of at least ${least}`;
}
