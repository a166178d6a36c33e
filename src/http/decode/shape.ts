// Decides whether a value fits a schema, by a form of it that was worked out once; says nothing of why it does not.
import { alternatives, fitsType, fitsValue, type Node, tagOf, typeOf } from "./json-schema.ts";

/** What may stand at one place, by the type of what stands there; undefined: nothing of that type. */
export interface Shape {
  /** Anything at all, without a look. */
  readonly isOpen: boolean;
  readonly texts: readonly TextRule[] | undefined;
  readonly numbers: readonly NumberRule[] | undefined;
  readonly objects: ObjectRule | TaggedRules | undefined;
  readonly arrays: readonly ArrayRule[] | undefined;
  /** For what is none of these. */
  readonly options: readonly Node[];
}

export interface TextRule {
  readonly least: number;
  readonly most: number;
  readonly pattern: RegExp | undefined;
  readonly values: ReadonlySet<unknown> | undefined;
}

export interface NumberRule {
  readonly isWhole: boolean;
  readonly least: number;
  /** Whether it must be above `least`. */
  readonly isAbove: boolean;
  readonly most: number;
  readonly values: ReadonlySet<unknown> | undefined;
}

interface MemberRule {
  readonly shape: Shape;
  readonly isRequired: boolean;
}

export interface ObjectRule {
  readonly tag: undefined;
  readonly members: ReadonlyMap<string, MemberRule>;
  /** How many of them are required. */
  readonly required: number;
  readonly names: TextRule | undefined;
  readonly others: Shape;
  /** No member matters. */
  readonly isOpen: boolean;
}

/** Objects that are told apart by a member which each has with a value of its own. */
export interface TaggedRules {
  readonly tag: string;
  readonly byTag: ReadonlyMap<unknown, ObjectRule>;
  /** For any other text there; undefined: there may be none. */
  readonly others: ObjectRule | undefined;
}

export interface ArrayRule {
  readonly least: number;
  readonly most: number;
  readonly items: Shape;
  readonly itemOptions: readonly Node[];
}

export const openShape: Shape = {
  isOpen: true,
  texts: undefined,
  numbers: undefined,
  objects: undefined,
  arrays: undefined,
  options: [],
};
const infinite = Number.POSITIVE_INFINITY;

/** `options` are alternatives, none of which is a union itself. */
export function shapeOf(options: readonly Node[]): Shape {
  const [first] = options;
  if (options.length === 1 && first && isFree(first)) return openShape;
  const of = (type: string) => options.filter((option) => fitsType(option, type, type === "number" ? 0 : undefined));
  const [texts, numbers, objects, arrays] = [of("string"), of("number"), of("object"), of("array")];
  return {
    isOpen: false,
    texts: texts.length > 0 ? texts.map(textRule) : undefined,
    numbers: numbers.length > 0 ? numbers.map(numberRule) : undefined,
    objects: objects.length > 0 ? objectRules(objects) : undefined,
    arrays: arrays.length > 0 ? arrays.map(arrayRule) : undefined,
    options,
  };
}

/** Work and memory are bounded by the value's own size, and it ends at the first thing that does not fit. */
export function fits(shape: Shape, value: unknown): boolean {
  if (shape.isOpen) return true;
  if (typeof value === "string") return shape.texts !== undefined && fitsAnyText(shape.texts, value);
  if (typeof value === "number") return shape.numbers !== undefined && fitsAnyNumber(shape.numbers, value);
  if (typeof value === "object" && value !== null) {
    if (Array.isArray(value)) return shape.arrays !== undefined && fitsArray(shape.arrays, value);
    return shape.objects !== undefined && fitsObject(shape.objects, value as Record<string, unknown>);
  }
  const type = typeOf(value);
  return shape.options.some((option) => fitsType(option, type, value) && fitsValue(option, value));
}

function fitsAnyText(rules: readonly TextRule[], value: string): boolean {
  for (let i = 0; i < rules.length; i++) if (fitsText(rules[i] as TextRule, value)) return true;
  return false;
}

function fitsText({ least, most, pattern, values }: TextRule, value: string): boolean {
  if (values !== undefined) return values.has(value);
  return value.length >= least && value.length <= most && (pattern === undefined || pattern.test(value));
}

export function fitsAnyNumber(rules: readonly NumberRule[], value: number): boolean {
  for (let i = 0; i < rules.length; i++) if (fitsNumber(rules[i] as NumberRule, value)) return true;
  return false;
}

function fitsNumber({ isWhole, least, isAbove, most, values }: NumberRule, value: number): boolean {
  if (values !== undefined) return values.has(value);
  if (value < least || (isAbove && value === least)) return false;
  return value <= most && (!isWhole || Number.isInteger(value));
}

/** The rule that is for this object; undefined where it fits none. */
export function objectRuleFor(
  rules: ObjectRule | TaggedRules | undefined,
  value: Readonly<Record<string, unknown>>,
): ObjectRule | undefined {
  if (rules === undefined || rules.tag === undefined) return rules;
  const tag = value[rules.tag];
  return rules.byTag.get(tag) ?? (typeof tag === "string" ? rules.others : undefined);
}

/** All of them. */
export function objectRulesOf({ objects }: Shape): Iterable<ObjectRule> {
  if (objects === undefined) return [];
  if (objects.tag === undefined) return [objects];
  return objects.others === undefined ? objects.byTag.values() : [...objects.byTag.values(), objects.others];
}

/** The rule that is for this array: several kinds are told apart by their first item. */
export function arrayRuleFor(
  rules: readonly ArrayRule[] | undefined,
  value: readonly unknown[],
): ArrayRule | undefined {
  if (rules === undefined) return undefined;
  return rules.length === 1 ? rules[0] : byFirstItem(rules, value[0]);
}

function fitsObject(rules: ObjectRule | TaggedRules, value: Readonly<Record<string, unknown>>): boolean {
  const rule = objectRuleFor(rules, value);
  if (rule === undefined) return false;
  if (rule.isOpen) return true;
  const { members, names, others } = rule;
  let missing = rule.required;
  for (const name in value) {
    if (names !== undefined && !fitsText(names, name)) return false;
    const known = members.get(name);
    const member = value[name];
    if (known === undefined) {
      if (!others.isOpen && !fits(others, member)) return false;
    } else {
      if (!fits(known.shape, member)) return false;
      if (known.isRequired && member !== undefined) missing--;
    }
  }
  return missing === 0;
}

function fitsArray(rules: readonly ArrayRule[], value: readonly unknown[]): boolean {
  const rule = arrayRuleFor(rules, value);
  if (rule === undefined || value.length < rule.least || value.length > rule.most) return false;
  const { items } = rule;
  if (items.isOpen) return true;
  for (let i = 0; i < value.length; i++) if (!fits(items, value[i])) return false;
  return true;
}

/** Several kinds of arrays are told apart by their first item. */
export function byFirstItem(rules: readonly ArrayRule[], item: unknown): ArrayRule | undefined {
  const type = typeOf(item);
  return rules.find(({ itemOptions }) => itemOptions.some((option) => fitsType(option, type, item))) ?? rules[0];
}

function textRule({ minLength, maxLength, pattern, ...node }: Node): TextRule {
  return {
    least: minLength ?? 0,
    most: maxLength ?? infinite,
    pattern: pattern === undefined ? undefined : new RegExp(pattern),
    values: valuesOf(node),
  };
}

function numberRule({ type, exclusiveMinimum, minimum, maximum, ...node }: Node): NumberRule {
  const above = exclusiveMinimum ?? -infinite;
  const least = minimum ?? -infinite;
  return {
    isWhole: type === "integer",
    least: Math.max(above, least),
    isAbove: exclusiveMinimum !== undefined && above >= least,
    most: maximum ?? infinite,
    values: valuesOf(node),
  };
}

function valuesOf(node: Node): ReadonlySet<unknown> | undefined {
  if (node.const !== undefined) return new Set([node.const]);
  return node.enum && new Set(node.enum);
}

function objectRules(options: readonly Node[]): ObjectRule | TaggedRules {
  const [first] = options;
  if (options.length === 1 && first) return objectRule(first);
  const tag = tagOf(options);
  const byTag = new Map<unknown, ObjectRule>();
  if (tag === undefined) return { tag: "", byTag, others: undefined };
  let others: ObjectRule | undefined;
  for (const option of options) {
    const value = option.properties?.[tag]?.const;
    if (value === undefined) others = objectRule(option);
    else if (!byTag.has(value)) byTag.set(value, objectRule(option));
  }
  return { tag, byTag, others };
}

function objectRule({ properties = {}, required = [], propertyNames, additionalProperties }: Node): ObjectRule {
  const members = new Map<string, MemberRule>();
  for (const name of new Set([...Object.keys(properties), ...required])) {
    const shape = shapeOf(alternatives(properties[name] ?? {}));
    members.set(name, { shape, isRequired: required.includes(name) });
  }
  const others = typeof additionalProperties === "object" ? shapeOf(alternatives(additionalProperties)) : openShape;
  const names = propertyNames && nameRule(propertyNames);
  const isOpen = members.size === 0 && names === undefined && others.isOpen;
  return { tag: undefined, members, required: required.length, names, others, isOpen };
}

/** Undefined where every name will do: they are texts at any rate. */
function nameRule({ type: _, ...node }: Node): TextRule | undefined {
  return isFree(node) ? undefined : textRule(node);
}

function arrayRule({ minItems, maxItems, items }: Node): ArrayRule {
  const itemOptions = alternatives(items ?? {});
  return { least: minItems ?? 0, most: maxItems ?? infinite, items: shapeOf(itemOptions), itemOptions };
}

const bounds = [
  ...(["type", "const", "enum", "properties", "required", "additionalProperties", "propertyNames", "items"] as const),
  ...(["pattern", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems"] as const),
] as const;

/** Whether it allows everything. */
function isFree(node: Node): boolean {
  return bounds.every((name) => node[name] === undefined);
}
