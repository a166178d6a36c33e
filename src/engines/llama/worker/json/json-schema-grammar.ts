// Translates a JSON Schema into a grammar that allows only JSON of that schema. The translation of
// node-llama-cpp is not used, because it ignores unknown keywords (anyOf becomes null, optional properties
// become required).
import { isObject, type JsonObject } from "../request/fields.ts";
import { invalid } from "../request/request-error.ts";
import { alternatives, GrammarRules, literal, otherString } from "./json-grammar.ts";
import { resolvePointer } from "./json-pointer.ts";
import {
  constraints,
  hasType,
  impliedType,
  readTypes,
  refuseBeside,
  refuseUnsupported,
  type TypeName,
  textFormats,
} from "./json-schema-keywords.ts";
import { mergeSchemas, mergeWork } from "./json-schema-merge.ts";

/** llama.cpp refuses grammars with longer repetitions. */
const maxRepetitions = 1000;
/**
 * The most work that one schema may cause, because work can grow exponentially with its length. A unit takes
 * microseconds.
 */
const maxWork = 5000;
/**
 * Each optional member of an object costs this many work units. `repetitionsPerWork` repetitions cost one unit. Both
 * are charged because llama.cpp's grammar compiler takes longer for them.
 */
const workPerOptional = 2;
const repetitionsPerWork = 50;
/** The characters of literal text that count as one unit of work. */
const textPerWork = 100;
const deepestNesting = 100;

export interface SchemaOptions {
  /** The path of the schema in the request, for error messages. */
  path: string;
  /** True if every keyword must be enforced, as in OpenAI's strict mode. */
  strict: boolean;
  /** The work budget that the schemas of one request share. By default each schema has its own budget. */
  budget?: WorkBudget;
}

/** The work that the schemas of a request may still cause, in units. */
export interface WorkBudget {
  remaining: number;
}

/**
 * Returns the grammar text for a schema. Throws a RequestError (400) that names the keyword that cannot be enforced.
 */
export function schemaGrammar(schema: unknown, options: SchemaOptions): string {
  const translation = new SchemaTranslation(schema, options);
  return translation.rules.grammar(translation.expression(schema, options.path, 0));
}

class SchemaTranslation {
  readonly rules = new GrammarRules();
  readonly #root: unknown;
  readonly #options: SchemaOptions;
  readonly #references = new Map<string, string>();
  /**
   * The chain of references that lead directly to each other, without an object or array in between. If a reference
   * occurs twice in the chain, resolving it would never end.
   */
  #leading = new Set<string>();
  readonly #budget: WorkBudget;

  constructor(root: unknown, options: SchemaOptions) {
    this.#root = root;
    this.#options = options;
    this.#budget = options.budget ?? { remaining: maxWork };
  }

  expression(schema: unknown, path: string, depth: number): string {
    this.#spend(1);
    if (schema === true) return "value";
    if (!isObject(schema)) throw invalid(`${path} must be a JSON Schema object.`);
    if (depth > deepestNesting)
      throw invalid(`${path} is nested too deeply; at most ${deepestNesting} levels are allowed.`);
    refuseUnsupported(schema, path, this.#options.strict);
    const { nullable, ...rest } = schema;
    const expression = this.#single(rest, path, depth);
    return nullable === true ? alternatives([expression, "null"]) : expression;
  }

  #spend(work: number): void {
    this.#budget.remaining -= work;
    if (this.#budget.remaining < 0) throw invalid(`${this.#options.path} is too large or too entangled; simplify it.`);
  }

  #single(schema: JsonObject, path: string, depth: number): string {
    const { $ref: reference, type } = schema;
    if (schema["allOf"] !== undefined) return this.#all(schema, path, depth);
    if (reference !== undefined) {
      refuseBeside(schema, "$ref", [], path);
      return this.#reference(reference, path, depth);
    }
    if (schema["const"] !== undefined) return this.#literals(schema, "const", [schema["const"]], path);
    if (schema["enum"] !== undefined) return this.#literals(schema, "enum", schema["enum"], path);
    for (const keyword of ["anyOf", "oneOf"] as const) {
      if (schema[keyword] !== undefined) return this.#union(schema, keyword, path, depth);
    }
    const types = type === undefined ? [impliedType(schema)] : readTypes(type, `${path}.type`);
    const expressions = types.map((one) => this.#typed(one, schema, path, depth));
    return expressions.length === 1 ? (expressions[0] ?? "") : this.rules.add(alternatives(expressions));
  }

  #literals(schema: JsonObject, keyword: "const" | "enum", values: unknown, path: string): string {
    refuseBeside(schema, keyword, ["type"], path);
    if (!Array.isArray(values) || values.length === 0) throw invalid(`${path}.enum must be a non-empty array.`);
    const types = schema["type"] === undefined ? undefined : readTypes(schema["type"], `${path}.type`);
    const fitting = values.filter((value) => types?.some((type) => hasType(value, type)) ?? true);
    if (fitting.length === 0)
      throw invalid(`${path}.${keyword} holds no value of the type that ${path}.type asks for.`);
    const texts = fitting.map((value) => JSON.stringify(value));
    this.#spend(texts.reduce((work, text) => work + 1 + text.length / textPerWork, 0));
    return this.rules.add(alternatives(texts.map(literal)));
  }

  /** Returns the rule for `allOf`: all its schemas are merged into one. */
  #all(schema: JsonObject, path: string, depth: number): string {
    const { allOf, ...own } = schema;
    if (!Array.isArray(allOf) || allOf.length === 0) throw invalid(`${path}.allOf must be a non-empty array.`);
    const parts = [...allOf.filter((part) => part !== true), ...(constraints(own).length > 0 ? [own] : [])];
    if (parts.length < 2) return this.expression(parts[0] ?? true, `${path}.allOf[0]`, depth + 1);
    return this.#merged(parts, `${path}.allOf`, depth);
  }

  #union(schema: JsonObject, keyword: "anyOf" | "oneOf", path: string, depth: number): string {
    const { [keyword]: options, ...own } = schema;
    if (!Array.isArray(options) || options.length === 0) {
      throw invalid(`${path}.${keyword} must be a non-empty array.`);
    }
    const kept = constraints(own);
    const base = Object.fromEntries(kept.map((key) => [key, own[key]]));
    const expressions = options.map((option, index) => {
      const optionPath = `${path}.${keyword}[${index}]`;
      if (kept.length === 0) return this.expression(option, optionPath, depth + 1);
      // The keywords beside `anyOf` or `oneOf` apply to each alternative.
      return option === true ? this.expression(base, path, depth + 1) : this.#merged([base, option], optionPath, depth);
    });
    return this.rules.add(alternatives(expressions));
  }

  #merged(parts: readonly unknown[], path: string, depth: number): string {
    const resolved = parts.map((part) => {
      let schema = part;
      while (isObject(schema) && schema["$ref"] !== undefined) {
        this.#spend(1);
        refuseBeside(schema, "$ref", [], path);
        schema = this.#resolve(schema["$ref"], path);
      }
      if (schema === true) return {};
      if (!isObject(schema)) throw invalid(`${path} must hold JSON Schema objects.`);
      this.#spend(mergeWork(schema));
      return schema;
    });
    return this.expression(mergeSchemas(resolved, path), path, depth + 1);
  }

  #typed(type: TypeName | undefined, schema: JsonObject, path: string, depth: number): string {
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
    }
  }

  #bracketed(inner: () => string): string {
    const leading = this.#leading;
    this.#leading = new Set();
    const expression = inner();
    this.#leading = leading;
    return expression;
  }

  #reference(reference: unknown, path: string, depth: number): string {
    const target = this.#resolve(reference, path);
    const key = String(reference);
    if (this.#leading.has(key)) throw invalid(`${path}.$ref "${key}" only refers to itself.`);
    const known = this.#references.get(key);
    if (known !== undefined) return known;
    const name = this.rules.reserve();
    this.#references.set(key, name);
    this.#leading.add(key);
    this.rules.define(name, this.expression(target, `${path}.$ref`, depth + 1));
    this.#leading.delete(key);
    return name;
  }

  #resolve(reference: unknown, path: string): unknown {
    if (typeof reference !== "string") throw invalid(`${path}.$ref must be a string.`);
    this.#spend(reference.length / textPerWork);
    const target = resolvePointer(this.#root, reference);
    if (target !== undefined) return target;
    throw invalid(`${path}.$ref "${reference}" does not point into the schema; use "#/$defs/…".`);
  }

  #object(schema: JsonObject, path: string, depth: number): string {
    const { properties, required = [], additionalProperties } = schema;
    if (properties !== undefined && !isObject(properties)) throw invalid(`${path}.properties must be an object.`);
    if (!isTextArray(required)) throw invalid(`${path}.required must be an array of strings.`);
    const names = Object.keys(properties ?? {});
    const needed = new Set(required);
    // Only a schema without `properties` allows other members by default. Otherwise the model would invent some.
    const extra = additionalProperties ?? properties === undefined;
    const pair = (name: string, value: string) => {
      this.#spend(name.length / textPerWork);
      return this.rules.add(`${literal(JSON.stringify(name))} ":" space ${value}`);
    };
    const property = (name: string) =>
      pair(name, this.expression(properties?.[name], `${path}.properties.${name}`, depth + 1));
    const first = names.filter((name) => needed.has(name)).map(property);
    const optional = names.filter((name) => !needed.has(name)).map(property);
    this.#spend(optional.length * workPerOptional);
    for (const name of needed) {
      if (properties !== undefined && Object.hasOwn(properties, name)) continue;
      if (additionalProperties === false) {
        throw invalid(`${path}.required names "${name}", which properties lacks and additionalProperties forbids.`);
      }
      first.push(pair(name, this.expression(additionalProperties ?? true, `${path}.additionalProperties`, depth + 1)));
    }
    // A free member must not repeat a declared name, because the later value would override the checked one.
    const other = () => otherString(this.rules, names, (work) => this.#spend(work));
    const free =
      extra === false
        ? undefined
        : `${other()} ":" space ${this.expression(extra, `${path}.additionalProperties`, depth + 1)}`;
    return this.rules.add(`"{" space ${this.#members(first, optional, free)} "}"`);
  }

  /**
   * Returns the expression for the members of an object: required ones, then any optional ones, both in order,
   * then free ones.
   */
  #members(required: readonly string[], optional: readonly string[], free: string | undefined): string {
    let tail = free === undefined ? '""' : this.rules.add(`("," space ${free})*`);
    const starts = free === undefined ? [] : [`${free} ${tail}`];
    // The rules are built from the last optional member to the first, because each rule ends with the rule for
    // what follows.
    for (const member of optional.toReversed()) {
      starts.unshift(`${member} ${tail}`);
      tail = this.rules.add(`("," space ${member})? ${tail}`);
    }
    if (required.length > 0) return `${required.join(' "," space ')} ${tail} space`;
    return starts.length === 0 ? "" : `(${alternatives(starts)} space)?`;
  }

  #array(schema: JsonObject, path: string, depth: number): string {
    const { items, prefixItems = [] } = schema;
    if (!Array.isArray(prefixItems)) throw invalid(`${path}.prefixItems must be an array.`);
    const fixed = prefixItems.map((item, index) => this.expression(item, `${path}.prefixItems[${index}]`, depth + 1));
    const least = this.#repetitions(schema, "minItems", path) ?? 0;
    const most = this.#repetitions(schema, "maxItems", path);
    if (most !== undefined && most < Math.max(least, fixed.length)) {
      throw invalid(`${path}.maxItems must not be less than minItems or the number of prefixItems.`);
    }
    if (items === false && least > fixed.length) {
      throw invalid(`${path}.minItems must not be more than the number of prefixItems where items is false.`);
    }
    const item =
      items === false ? undefined : this.rules.add(this.expression(items ?? true, `${path}.items`, depth + 1));
    const from = Math.max(0, least - fixed.length);
    const to = most === undefined ? undefined : most - fixed.length;
    const free = item === undefined || to === 0 ? "" : this.#repeated(item, from, to, fixed.length > 0);
    const members = `${fixed.join(' "," space ')}${free}`;
    return this.rules.add(members === "" ? '"[" space "]"' : `"[" space ${members} "]"`);
  }

  /**
   * Returns `item` repeated from `least` to `most` times, separated by commas. If `follows`, a comma comes
   * before the first item too.
   */
  #repeated(item: string, least: number, most: number | undefined, follows: boolean): string {
    const another = this.rules.add(`"," space ${item}`);
    if (follows) return ` ${another}{${least},${most ?? ""}} space`;
    const more = `${another}{${Math.max(0, least - 1)},${most === undefined ? "" : most - 1}}`;
    return least === 0 ? `(${item} ${more} space)?` : `${item} ${more} space`;
  }

  #string(schema: JsonObject, path: string): string {
    const least = this.#repetitions(schema, "minLength", path) ?? 0;
    const most = this.#repetitions(schema, "maxLength", path);
    if (most !== undefined && most < least) throw invalid(`${path}.maxLength must not be less than minLength.`);
    const format = textFormats.get(schema["format"]);
    if (format !== undefined) {
      const bound = least > format.shortest ? "minLength" : "maxLength";
      if (bound === "maxLength" && (most ?? format.longest) >= format.longest) return `"\\"" ${format.grammar} "\\""`;
      throw invalid(`${path}.${bound} cannot be enforced beside the format. Remove one of them.`);
    }
    if (least === 0 && most === undefined) return "string";
    return this.rules.add(`"\\"" char{${least},${most ?? ""}} "\\""`);
  }

  #repetitions(schema: JsonObject, keyword: string, path: string): number | undefined {
    const value = schema[keyword];
    if (value === undefined) return undefined;
    if (!Number.isInteger(value) || (value as number) < 0) throw invalid(`${path}.${keyword} must be a whole number.`);
    this.#spend(Math.min(value as number, maxRepetitions) / repetitionsPerWork);
    if ((value as number) <= maxRepetitions) return value as number;
    // A grammar cannot enforce a limit above `maxRepetitions`. Outside strict mode, such an upper limit is ignored.
    // Such a lower limit is always refused.
    if (keyword.startsWith("max") && !this.#options.strict) return undefined;
    throw invalid(`${path}.${keyword} must be at most ${maxRepetitions}.`);
  }
}

function isTextArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}
