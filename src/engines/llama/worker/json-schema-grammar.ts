// Translates a JSON Schema into a grammar that lets the model write only JSON of that schema.
// The library's own translation drops what it does not know (anyOf becomes null, optional properties become required).
import { isObject, type JsonObject } from "./fields.ts";
import { alternatives, GrammarRules, literal } from "./json-grammar.ts";
import { invalid } from "./request-error.ts";

/** Change what is valid in ways that a grammar cannot follow: always refused. */
const unsupportedKeywords = ["not", "if", "then", "else", "patternProperties", "dependentSchemas", "$dynamicRef"];
/** Narrow what is otherwise right: refused when the client asks for strictness, else left to the model. */
const unenforcedKeywords = [
  "pattern",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "uniqueItems",
  "contains",
  "minProperties",
  "maxProperties",
  "propertyNames",
  "dependentRequired",
];
/** llama.cpp refuses grammars with longer repetitions. */
const mostRepetitions = 1000;
const mostRules = 5000;
const deepestNesting = 100;

export interface SchemaOptions {
  /** Where the schema stands in the request, for error messages. */
  path: string;
  /** Whether the client asked that every keyword be enforced. */
  strict: boolean;
}

/** The grammar text for a schema. Throws a RequestError (400) that names the keyword that cannot be enforced. */
export function schemaGrammar(schema: unknown, options: SchemaOptions): string {
  const translation = new SchemaTranslation(schema, options);
  return translation.rules.grammar(translation.expression(schema, options.path, 0));
}

class SchemaTranslation {
  readonly rules = new GrammarRules();
  readonly #root: unknown;
  readonly #options: SchemaOptions;
  readonly #references = new Map<string, string>();
  /** References that are being followed and have not met a bracket yet: one of them again would never end. */
  #leading = new Set<string>();

  constructor(root: unknown, options: SchemaOptions) {
    this.#root = root;
    this.#options = options;
  }

  expression(schema: unknown, path: string, depth: number): string {
    if (schema === true) return "value";
    if (!isObject(schema)) throw invalid(`${path} must be a JSON Schema object.`);
    if (depth > deepestNesting)
      throw invalid(`${path} is nested too deeply; at most ${deepestNesting} levels are allowed.`);
    if (this.rules.size > mostRules) throw invalid(`${this.#options.path} is too large; simplify it.`);
    this.#refuseUnsupported(schema, path);
    const expression = this.#single(schema, path, depth);
    return schema["nullable"] === true ? alternatives([expression, "null"]) : expression;
  }

  #single(schema: JsonObject, path: string, depth: number): string {
    const { $ref: reference, const: constant, enum: choices, allOf, type } = schema;
    if (typeof reference === "string") return this.#reference(reference, path, depth);
    if (constant !== undefined) return literal(JSON.stringify(constant));
    if (choices !== undefined) {
      if (!Array.isArray(choices) || choices.length === 0) throw invalid(`${path}.enum must be a non-empty array.`);
      return this.rules.add(alternatives(choices.map((choice) => literal(JSON.stringify(choice)))));
    }
    for (const keyword of ["anyOf", "oneOf"]) {
      const options = schema[keyword];
      if (options !== undefined) return this.#union(options, `${path}.${keyword}`, depth);
    }
    if (allOf !== undefined) return this.expression(mergeAll(schema, `${path}.allOf`), path, depth + 1);
    if (Array.isArray(type)) {
      return this.#union(
        type.map((one) => ({ ...schema, type: one })),
        path,
        depth,
      );
    }
    return this.#typed(typeof type === "string" ? type : impliedType(schema), schema, path, depth);
  }

  #typed(type: string | undefined, schema: JsonObject, path: string, depth: number): string {
    switch (type) {
      case undefined:
        return "value";
      case "object":
        return this.#bracketed(() => this.#object(schema, path, depth));
      case "array":
        return this.#bracketed(() => this.#array(schema, path, depth));
      case "string":
        return this.#string(schema, path);
      case "number":
      case "integer":
      case "boolean":
      case "null":
        return type;
      default:
        throw invalid(
          `${path}.type must be one of "object", "array", "string", "number", "integer", "boolean", "null".`,
        );
    }
  }

  #bracketed(inner: () => string): string {
    const leading = this.#leading;
    this.#leading = new Set();
    const expression = inner();
    this.#leading = leading;
    return expression;
  }

  #union(options: unknown, path: string, depth: number): string {
    if (!Array.isArray(options) || options.length === 0) throw invalid(`${path} must be a non-empty array.`);
    const expressions = options.map((option, index) => this.expression(option, `${path}[${index}]`, depth + 1));
    return this.rules.add(alternatives(expressions));
  }

  #reference(reference: string, path: string, depth: number): string {
    if (this.#leading.has(reference)) throw invalid(`${path}.$ref "${reference}" only refers to itself.`);
    const known = this.#references.get(reference);
    if (known !== undefined) return known;
    const name = this.rules.reserve();
    this.#references.set(reference, name);
    this.#leading.add(reference);
    this.rules.define(name, this.expression(this.#resolve(reference, path), `${path}.$ref`, depth + 1));
    this.#leading.delete(reference);
    return name;
  }

  /** JSON Pointer (RFC 6901) within the schema itself. */
  #resolve(reference: string, path: string): unknown {
    const unresolved = invalid(`${path}.$ref "${reference}" does not point into the schema; use "#/$defs/…".`);
    if (!reference.startsWith("#")) throw unresolved;
    let target: unknown = this.#root;
    for (const part of reference.slice(1).split("/").slice(1)) {
      const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (!isObject(target) || !Object.hasOwn(target, key)) throw unresolved;
      target = target[key];
    }
    return target;
  }

  #object(schema: JsonObject, path: string, depth: number): string {
    const { properties, required, additionalProperties } = schema;
    if (properties !== undefined && !isObject(properties)) throw invalid(`${path}.properties must be an object.`);
    const names = Object.keys(properties ?? {});
    const needed = new Set(Array.isArray(required) ? required : []);
    // Where the schema names its properties and says no more, others would be inventions of the model.
    const extra = additionalProperties ?? properties === undefined;
    const pair = (name: string) => {
      const value = this.expression(properties?.[name], `${path}.properties.${name}`, depth + 1);
      return this.rules.add(`${literal(JSON.stringify(name))} ":" space ${value}`);
    };
    const first = names.filter((name) => needed.has(name)).map(pair);
    const optional = names.filter((name) => !needed.has(name)).map(pair);
    const free =
      extra === false
        ? undefined
        : `string ":" space ${this.expression(extra, `${path}.additionalProperties`, depth + 1)}`;
    return this.rules.add(`"{" space ${this.#members(first, optional, free)} "}"`);
  }

  /** Required members in order, then any of the optional ones in order, then free ones. */
  #members(required: readonly string[], optional: readonly string[], free: string | undefined): string {
    let tail = free === undefined ? '""' : this.rules.add(`("," space ${free})*`);
    const starts = free === undefined ? [] : [`${free} ${tail}`];
    // From the last to the first: each optional member shares the rule for what may follow it.
    for (const member of optional.toReversed()) {
      starts.unshift(`${member} ${tail}`);
      tail = this.rules.add(`("," space ${member})? ${tail}`);
    }
    if (required.length > 0) return `${required.join(' "," space ')} ${tail} space`;
    return starts.length === 0 ? "" : `(${alternatives(starts)} space)?`;
  }

  #array(schema: JsonObject, path: string, depth: number): string {
    const { items, prefixItems } = schema;
    const fixed = Array.isArray(prefixItems)
      ? prefixItems.map((item, index) => this.expression(item, `${path}.prefixItems[${index}]`, depth + 1))
      : [];
    const least = this.#repetitions(schema, "minItems", path) ?? 0;
    const most = this.#repetitions(schema, "maxItems", path);
    if (most !== undefined && most < Math.max(least, fixed.length)) {
      throw invalid(`${path}.maxItems must not be less than minItems or the number of prefixItems.`);
    }
    const item =
      items === false ? undefined : this.rules.add(this.expression(items ?? true, `${path}.items`, depth + 1));
    const from = Math.max(0, least - fixed.length);
    const to = most === undefined ? undefined : most - fixed.length;
    const free = item === undefined || to === 0 ? "" : this.#repeated(item, from, to, fixed.length > 0);
    const members = `${fixed.join(' "," space ')}${free}`;
    return this.rules.add(members === "" ? '"[" space "]"' : `"[" space ${members} "]"`);
  }

  /** `item` from `least` to `most` times, with commas; `follows`: after other items, so a comma comes first. */
  #repeated(item: string, least: number, most: number | undefined, follows: boolean): string {
    const another = this.rules.add(`"," space ${item}`);
    if (follows) return ` ${another}{${least},${most ?? ""}} space`;
    const more = `${another}{${Math.max(0, least - 1)},${most === undefined ? "" : most - 1}}`;
    return least === 0 ? `(${item} ${more} space)?` : `${item} ${more} space`;
  }

  #string(schema: JsonObject, path: string): string {
    const { format } = schema;
    if (format === "date" || format === "time" || format === "uuid") return `"\\"" ${format} "\\""`;
    if (format === "date-time") return '"\\"" date "T" time "\\""';
    const least = this.#repetitions(schema, "minLength", path) ?? 0;
    const most = this.#repetitions(schema, "maxLength", path);
    if (most !== undefined && most < least) throw invalid(`${path}.maxLength must not be less than minLength.`);
    if (least === 0 && most === undefined) return "string";
    return this.rules.add(`"\\"" char{${least},${most ?? ""}} "\\""`);
  }

  #repetitions(schema: JsonObject, keyword: string, path: string): number | undefined {
    const value = schema[keyword];
    if (value === undefined) return undefined;
    if (!Number.isInteger(value) || (value as number) < 0) throw invalid(`${path}.${keyword} must be a whole number.`);
    if ((value as number) <= mostRepetitions) return value as number;
    // A high upper limit that is not asked for strictly may be left open; a lower limit may not.
    if (keyword.startsWith("max") && !this.#options.strict) return undefined;
    throw invalid(`${path}.${keyword} must be at most ${mostRepetitions}.`);
  }

  #refuseUnsupported(schema: JsonObject, path: string): void {
    for (const keyword of unsupportedKeywords) {
      if (schema[keyword] !== undefined)
        throw invalid(`${path}.${keyword}: this keyword cannot be enforced. Remove it.`);
    }
    if (!this.#options.strict) return;
    for (const keyword of unenforcedKeywords) {
      if (schema[keyword] === undefined || isVacuous(keyword, schema[keyword])) continue;
      throw invalid(`${path}.${keyword}: this keyword cannot be enforced. Remove it, or send "strict": false.`);
    }
  }
}

/** Schema libraries write the limits of safe integers for a plain integer. */
function isVacuous(keyword: string, value: unknown): boolean {
  if (value === false) return true;
  if (typeof value !== "number") return false;
  if (keyword === "minimum") return value <= Number.MIN_SAFE_INTEGER;
  return keyword === "maximum" && value >= Number.MAX_SAFE_INTEGER;
}

function impliedType(schema: JsonObject): string | undefined {
  if (schema["properties"] !== undefined || schema["additionalProperties"] !== undefined) return "object";
  return schema["items"] !== undefined || schema["prefixItems"] !== undefined ? "array" : undefined;
}

/** One object schema out of the parts; what a later part says of a keyword wins. */
function mergeAll(schema: JsonObject, path: string): JsonObject {
  const { allOf, ...own } = schema;
  if (!Array.isArray(allOf) || allOf.length === 0) throw invalid(`${path} must be a non-empty array.`);
  const merged: Record<string, unknown> = {};
  for (const part of [...allOf, own]) {
    if (!isObject(part)) throw invalid(`${path} must hold JSON Schema objects.`);
    if (part["$ref"] !== undefined && allOf.length > 1)
      throw invalid(`${path}: $ref beside other parts cannot be merged.`);
    const properties = { ...asObject(merged["properties"]), ...asObject(part["properties"]) };
    const required = [...asArray(merged["required"]), ...asArray(part["required"])];
    Object.assign(merged, part);
    if (Object.keys(properties).length > 0) merged["properties"] = properties;
    if (required.length > 0) merged["required"] = required;
  }
  return merged;
}

function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
