// Compiles a schema into its rule, with what is to be done with some of its members beyond their shape.
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

/** What is to be done with a member beyond its shape: it counts, is noted, or only the other way can read it. */
export interface MemberUse {
  readonly as?: "json" | "prompt" | "shown" | "type" | "unreadable";
  readonly note?: number;
  /** Names of its own members that the gateway goes by. */
  readonly decisive?: readonly string[];
  /** What is done with its own members, or those of its items. */
  readonly members?: MemberUses;
  /** Texts that may stand there: all others are for the other way. */
  readonly only?: readonly string[];
  /** Whether it tells what kind of thing the object is: one without any such member is for the other way. */
  readonly isTelling?: boolean;
}
export type MemberUses = Readonly<Record<string, MemberUse>>;

/** Members of what a model is shown as text: a message, or a part of one. */
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
/** Members of what is counted as of `shownTokens`, that are not counted or may say that they are of media. */
const shownUses: MemberUses = {
  ...Object.fromEntries([...notShown].map((name) => [name, {}])),
  encrypted_content: { note: notes.sealed },
  signature: { note: notes.sealed },
  type: { as: "type" },
};
const textTypes: readonly unknown[] = ["text", "refusal"];
const infinite = Number.POSITIVE_INFINITY;

/** Types of JSON Schema, by the kind of value. */
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

/** Whatever stands there. */
export const anyValue = openRule();
/** Whatever stands there, but for the pass over the bytes: what a model is shown, and what is looked into, has a shape. */
const unreadable = new ValueRule([{}]);
unreadable.isOpen = true;
const beside = [...refusedNames, ...doubtfulNames].map((name) => memberRule(name, unreadable));

/** Whatever stands there, if it is text that is no type of media. */
const anyType = openRule();
anyType.isType = true;
/** Whatever stands there, counted as of `shownTokens`. */
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
    looksAtAll: false,
    isReadable: true,
    // A client's own.
    isNamed: false,
    isMedia: false,
    decisiveHashes: new Int32Array(),
  });
  rule.arrays = kinds.map(() => ({ least: 0, most: infinite, items: rule, node: {} }));
  return rule;
}

/** The rule of a whole body. */
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

/** `uses`: of members, beyond what is done with those of any object that is counted as of `shownTokens`. */
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
    looksAtAll: propertyNames !== undefined || typeof additionalProperties === "object",
    isReadable: !mediaTypes.has(type),
    isNamed: known.size > 0,
    isMedia: false,
    decisiveHashes: new Int32Array(),
  });
}

/** `isShown`: a model is shown as JSON what has no name that is known. */
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
  // They stand first, and so before what the schema says of them.
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
    looksAtAll: propertyNames !== undefined || typeof additionalProperties === "object",
    // An object of which nothing is known may be an image as well as a text.
    isReadable: !(isShown && known.size === 0 && names === undefined && other.value.isOpen),
    isMedia,
    decisiveHashes: Int32Array.from(decisive, (name) => hashOf(Buffer.from(bareName(name)))),
  });
}

/** Undefined where every name will do: they are texts at any rate. */
function nameRule(node: Node): ValueRule | undefined {
  const { type: _, ...others } = node;
  return isFree(others) ? undefined : valueRule([node]);
}

function memberRule(name: string, value: ValueRule, use: MemberUse = {}, isRequired = false): MemberRule {
  const { as, note = -1, isTelling = false } = use;
  const bytes = Buffer.from(name);
  return {
    name,
    bytes,
    hash: hashOf(bytes),
    value,
    isRequired,
    isJson: as === "json",
    isShown: false,
    isTelling,
    note,
  };
}

/** Makes the rules of objects that are told apart by the member `tag`. */
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
    // A character has at least one byte, and a text of several bytes at least one character.
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
  // Half a token is still a number where an integer is wanted: the message is about its value.
  return type === undefined || type === types.get(kind) || (type === "integer" && kind === numberKind);
}

const bounds = [
  ...(["type", "const", "enum", "properties", "required", "additionalProperties", "propertyNames", "items"] as const),
  ...(["pattern", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems"] as const),
] as const;

/** Whether it allows everything. */
function isFree(node: Node): boolean {
  return bounds.every((name) => node[name] === undefined);
}
