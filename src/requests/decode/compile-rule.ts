// Compiles a JSON schema into a rule. The rule also contains what the gateway does with some members.
import { z } from "zod";
import { hashOf } from "../../base/text/json-bytes.ts";
import { bareName, doubtfulNames, refusedNames } from "../../domain/names/field-names.ts";
import { mediaTypes, notShown } from "../dialects/conversation/shown-tokens.ts";
import { notes } from "./body-notes.ts";
import { alternatives, inline, type Node, tagOf } from "./json-schema.ts";
import {
  type ArrayRule,
  arrayKind,
  falseKind,
  type MemberRule,
  type NumberRule,
  nullKind,
  numberKind,
  ObjectRule,
  objectKind,
  type TagRule,
  type TextRule,
  textKind,
  trueKind,
  ValueRule,
} from "./rule.ts";

/**
 * The gateway's use of a member, besides the check of its shape: its tokens are counted, its position is recorded, or
 * it requires a complete parse.
 */
export interface MemberUse {
  readonly as?: "json" | "prompt" | "shown" | "type" | "unreadable";
  readonly note?: number;
  /** Names of members within this member that the gateway reads. */
  readonly decisive?: readonly string[];
  /** Uses of the members within this member. If it is an array, of the members of each item. */
  readonly members?: MemberUses;
  /** Texts that the byte scan accepts as the member's value. Any other text requires a complete parse. */
  readonly only?: readonly string[];
  /**
   * True if the member identifies the kind of its object. If an object lacks such a member, a complete parse is
   * required.
   */
  readonly identifies?: boolean;
}
export type MemberUses = Readonly<Record<string, MemberUse>>;

/** Members of a message or content part that the model reads as text. */
const partUses: MemberUses = {
  content: { as: "prompt" },
  text: { as: "prompt" },
  tool_calls: { as: "json" },
  function_call: { as: "json" },
  refusal: { as: "json" },
  role: {},
  name: {},
  tool_call_id: {},
};
const promptUses: MemberUses = { ...partUses, type: { as: "unreadable" } };
/** Members whose tokens are not counted, as in `shownTokens`, and members that may mark their object as media. */
const shownUses: MemberUses = {
  ...Object.fromEntries([...notShown].map((name) => [name, {}])),
  encrypted_content: { note: notes.sealed },
  signature: { note: notes.sealed },
  type: { as: "type" },
};
const textTypes: readonly unknown[] = ["text", "refusal"];
const infinite = Number.POSITIVE_INFINITY;

/** For each kind of value, its type in JSON Schema. */
const types = new Map([
  [textKind, "string"],
  [numberKind, "number"],
  [objectKind, "object"],
  [arrayKind, "array"],
  [trueKind, "boolean"],
  [falseKind, "boolean"],
  [nullKind, "null"],
]);
const kinds = Array.from({ length: types.size + 1 }, (_, kind) => kind);

/** Accepts any value. */
export const anyValue = openRule();
/**
 * Accepts any value in a complete parse, but none in the byte scan. Used if the shape of a value decides how its tokens
 * are counted.
 */
const unreadable = new ValueRule([{}]);
unreadable.isOpen = true;
const beside = [...refusedNames, ...doubtfulNames].map((name) => memberRule(name, unreadable));

/** Accepts any value except a text that names a media type. */
const anyType = openRule();
anyType.isType = true;
/** Accepts any value. The byte scan counts the tokens of the whole value, in the same way as `shownTokens`. */
const shownValue = openRule("shown");

function openRule(as?: "shown"): ValueRule {
  const rule = new ValueRule([{}]);
  rule.isOpen = rule.readsAnything = rule.allowsTrue = rule.allowsFalse = rule.allowsNull = true;
  rule.isPrompt = rule.isShown = as === "shown";
  const within = as === "shown" ? Object.entries(shownUses) : [];
  rule.object = new ObjectRule({
    members: [],
    beside: within.map(([name, use]) => memberRule(name, use.as === "type" ? anyType : anyValue, use)),
    other: { ...memberRule("", rule), isShown: rule.isShown },
    names: undefined,
    checksAll: false,
    isReadable: true,
    // In objects without a schema, the client chooses the names. So these names are not compared with known names.
    isNamed: false,
    isMedia: false,
    decisiveHashes: new Int32Array(),
  });
  rule.arrays = kinds.map(() => ({ least: 0, most: infinite, items: rule, node: {} }));
  return rule;
}

/** Compiles the rule of a whole request body. */
export function compileRule(schema: z.ZodType, use: MemberUse = {}): ValueRule {
  const root = z.toJSONSchema(schema, { io: "input" }) as Node;
  return valueRule(alternatives(inline(root, root)), use);
}

function valueRule(options: readonly Node[], use: MemberUse = {}): ValueRule {
  const isPrompt = use.as === "prompt";
  const isShown = use.as === "shown";
  const [first] = options;
  if (options.length === 1 && first && isFree(first)) {
    if (isShown) return shownValue;
    if (use.as === "type") return anyType;
    return isPrompt || use.members ? unreadable : anyValue;
  }
  const of = (kind: number) => options.filter((option) => fitsKind(option, kind));
  const rule = new ValueRule(options);
  rule.isPrompt = isPrompt || isShown;
  rule.isShown = isShown;
  rule.isType = use.as === "type";
  rule.texts = of(textKind).map((node) => textRule(node, use.only));
  rule.numbers = of(numberKind).map(numberRule);
  rule.allowsTrue = of(trueKind).some((node) => allows(node, true));
  rule.allowsFalse = of(falseKind).some((node) => allows(node, false));
  rule.allowsNull = of(nullKind).some((node) => allows(node, null));
  const [arrays, objects] = [of(arrayKind), of(objectKind)];
  if (arrays.length > 0) rule.arrays = arrayRules(arrays, use);
  const [object] = objects;
  const tag = tagOf(objects);
  if (objects.length === 1 && object) {
    rule.object = isShown
      ? shownRule(object, use.members)
      : objectRule(object, isPrompt ? promptUses : (use.members ?? {}), isPrompt, false, use.decisive);
  } else if (tag !== undefined)
    rule.tag = tagRule(tag, objects, isShown ? (option) => shownRule(option) : optionRule(tag, isPrompt));
  return rule;
}

/**
 * Compiles the rule of an object whose tokens are all counted. `shownUses` applies to all such objects, and `uses` adds
 * more.
 */
function shownRule(
  { properties = {}, required = [], propertyNames, additionalProperties }: Node,
  uses: MemberUses = {},
): ObjectRule {
  const known = new Set([...Object.keys(properties), ...required]);
  const special: MemberUses = { ...shownUses, ...uses };
  const ruleFor = (name: string): MemberRule => {
    const use = Object.hasOwn(special, name) ? special[name] : undefined;
    const value = valueRule(alternatives(properties[name] ?? {}), use ?? { as: "shown" });
    return { ...memberRule(name, value, use, required.includes(name)), isShown: use === undefined };
  };
  const others = typeof additionalProperties === "object" ? alternatives(additionalProperties) : [{}];
  const type = properties["type"]?.const;
  return new ObjectRule({
    members: [...known].map(ruleFor),
    beside: [
      ...(known.size > 0 ? beside : []),
      ...Object.keys(special).flatMap((name) => (known.has(name) ? [] : [ruleFor(name)])),
    ],
    other: { ...memberRule("", valueRule(others, { as: "shown" })), isShown: true },
    names: propertyNames && nameRule(propertyNames),
    checksAll: propertyNames !== undefined || typeof additionalProperties === "object",
    isReadable: !mediaTypes.has(type),
    isNamed: known.size > 0,
    isMedia: false,
    decisiveHashes: new Int32Array(),
  });
}

/** Compiles the rule of an object. `isShown` is true if the model reads unknown members as JSON. */
function objectRule(
  { properties = {}, required = [], propertyNames, additionalProperties }: Node,
  uses: MemberUses,
  isShown = false,
  isMedia = false,
  decisive: readonly string[] = [],
): ObjectRule {
  const ruleFor = (name: string) => {
    const use = Object.hasOwn(uses, name) ? (uses[name] ?? {}) : {};
    return memberRule(name, valueRule(alternatives(properties[name] ?? {}), use), use, required.includes(name));
  };
  const known = new Set([...Object.keys(properties), ...required]);
  const used = new Set([...Object.keys(uses), ...decisive]).difference(known);
  // The byte scan searches `beside` first. So these members override a rule of the schema for the same name.
  const hidden = Object.keys(uses).filter((name) => uses[name]?.as === "unreadable");
  const others = typeof additionalProperties === "object" ? alternatives(additionalProperties) : [{}];
  const other = memberRule("", valueRule(others), isShown ? { as: "json" } : {});
  const names = propertyNames && nameRule(propertyNames);
  return new ObjectRule({
    members: [...known].map(ruleFor),
    beside: [
      ...(known.size > 0 ? beside : []),
      ...hidden.map((name) => memberRule(name, unreadable)),
      ...[...used].map(ruleFor),
    ],
    other,
    names,
    checksAll: propertyNames !== undefined || typeof additionalProperties === "object",
    // An object without known members may be an image or a text. The byte scan cannot count the tokens of such an
    // object.
    isReadable: !(isShown && known.size === 0 && names === undefined && other.value.isOpen),
    isMedia,
    decisiveHashes: Int32Array.from(decisive, (name) => hashOf(Buffer.from(bareName(name)))),
  });
}

/**
 * Returns the rule for the names in an object. Returns undefined if the schema allows every name, because names in JSON
 * are always strings.
 */
function nameRule(node: Node): ValueRule | undefined {
  const { type: _, ...others } = node;
  return isFree(others) ? undefined : valueRule([node]);
}

function memberRule(name: string, value: ValueRule, use: MemberUse = {}, isRequired = false): MemberRule {
  const { as, note = -1, identifies = false } = use;
  const bytes = Buffer.from(name);
  return {
    name,
    bytes,
    hash: hashOf(bytes),
    value,
    isRequired,
    isJson: as === "json",
    isShown: false,
    identifies,
    note,
  };
}

/**
 * Returns a function that compiles the rule of one alternative of an object. The value of the member `tag`
 * distinguishes the alternatives.
 */
function optionRule(tag: string, isPrompt: boolean): (option: Node) => ObjectRule {
  const isType = tag === "type";
  const uses = !isPrompt ? {} : isType ? partUses : promptUses;
  return (option) => {
    const isMedia = isPrompt && isType && !textTypes.includes(option.properties?.[tag]?.const);
    return objectRule(option, uses, isPrompt && !isMedia, isMedia);
  };
}

function tagRule(name: string, options: readonly Node[], ruleOf: (option: Node) => ObjectRule): TagRule {
  const byValue = new Map<unknown, ObjectRule>();
  const allowed: Node[] = [];
  let others: ObjectRule | undefined;
  for (const option of options) {
    const { const: value, ...tag } = option.properties?.[name] ?? {};
    const rule = ruleOf(option);
    if (value === undefined) {
      others = rule;
      allowed.push(tag);
    } else if (!byValue.has(value)) byValue.set(value, rule);
  }
  allowed.unshift({ enum: [...byValue.keys()] });
  const bytes = Buffer.from(name);
  const written = [...byValue].flatMap(([value, rule]) =>
    typeof value === "string" ? [{ value: Buffer.from(value), rule }] : [],
  );
  return { name, bytes, hash: hashOf(bytes), byValue, others, written, allowed };
}

function arrayRules(nodes: readonly Node[], use: MemberUse): ArrayRule[] {
  const rules = nodes.map((node) => {
    const itemOptions = alternatives(node.items ?? {});
    const rule = {
      least: node.minItems ?? 0,
      most: node.maxItems ?? infinite,
      items: valueRule(itemOptions, use),
      node,
    };
    return { itemOptions, rule };
  });
  const fitting = (kind: number) => rules.find(({ itemOptions }) => itemOptions.some((item) => fitsKind(item, kind)));
  return kinds.flatMap((kind) => (fitting(kind) ?? rules[0])?.rule ?? []);
}

function textRule(node: Node, only?: readonly unknown[]): TextRule {
  const { minLength: least = 0, maxLength: most = infinite, pattern } = node;
  const values = valuesOf(node);
  const readable = only ?? (values && [...values]);
  return {
    least,
    most,
    // The number of bytes decides if possible: each character has at least one byte, and a text with bytes has at least
    // one character.
    maxBytes: least <= 1 && pattern === undefined ? most : -1,
    pattern: pattern === undefined ? undefined : new RegExp(pattern),
    values,
    written: readable?.filter((value) => typeof value === "string").map((value) => Buffer.from(value)),
  };
}

function numberRule(node: Node): NumberRule {
  const { type, exclusiveMinimum: above = -infinite, minimum = -infinite, maximum = infinite } = node;
  return {
    isWhole: type === "integer",
    least: Math.max(above, minimum),
    isAbove: node.exclusiveMinimum !== undefined && above >= minimum,
    most: maximum,
    values: valuesOf(node),
  };
}

function valuesOf(node: Node): ReadonlySet<unknown> | undefined {
  if (node.const !== undefined) return new Set([node.const]);
  return node.enum && new Set(node.enum);
}

function allows(node: Node, value: unknown): boolean {
  return valuesOf(node)?.has(value) ?? true;
}

function fitsKind({ type }: Node, kind: number): boolean {
  // A fraction matches `integer` here too, so that the error message is about its value and not about its type.
  return type === undefined || type === types.get(kind) || (type === "integer" && kind === numberKind);
}

const bounds = [
  ...(["type", "const", "enum", "properties", "required", "additionalProperties", "propertyNames", "items"] as const),
  ...(["pattern", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems"] as const),
] as const;

/** Reports whether a schema node allows every value. */
function isFree(node: Node): boolean {
  return bounds.every((name) => node[name] === undefined);
}
