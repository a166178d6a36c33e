// The shape of a request in the form in which the pass over its bytes asks for it, with what of it counts as prompt.
import { hashOf, isSame } from "../../base/text/json-bytes.ts";
import { bareName, doubtfulNames, refusedNames } from "./field-names.ts";
import {
  type ArrayRule as ArrayShape,
  byFirstItem,
  fits,
  type NumberRule,
  type ObjectRule as ObjectShape,
  openShape,
  type Shape,
  type TaggedRules,
  type TextRule as TextShape,
} from "./shape.ts";

/** What may stand at one place. What it cannot be sure of it does not allow: then the request is read in the other way. */
export class ValueRule {
  isOpen = false;
  /** Whether each text and number in it is shown to the model. */
  isPrompt = false;
  texts: readonly TextRule[] = [];
  numbers: readonly NumberRule[] = [];
  object: ObjectRule | undefined;
  tag: TagRule | undefined;
  /** By what kind of value comes first; undefined: no array. */
  arrays: readonly ArrayRule[] | undefined;
  allowsTrue = false;
  allowsFalse = false;
  allowsNull = false;
}

export interface TextRule {
  /** Bytes between the quotes: a text has at least one, and no more characters than bytes. */
  readonly least: number;
  readonly most: number;
  /** One of these, as it is written. */
  readonly values: readonly Uint8Array[] | undefined;
}

export interface ArrayRule {
  readonly least: number;
  readonly most: number;
  readonly items: ValueRule;
}

export interface MemberRule {
  readonly name: Uint8Array;
  readonly hash: number;
  readonly value: ValueRule;
  readonly isRequired: boolean;
  /** Whether a model is shown it as JSON. */
  readonly isJson: boolean;
  /** Where it is noted; -1: nowhere. */
  readonly note: number;
}

/** Objects that are told apart by the value of one member. */
export interface TagRule {
  readonly hash: number;
  readonly name: Uint8Array;
  readonly options: readonly { readonly value: Uint8Array; readonly rule: ObjectRule }[];
}

export class ObjectRule {
  /** How many members are required. */
  readonly required: number;
  readonly names: TextRule | undefined;
  /** Whether a schema knows names here: then one that another parser may take for them is for the other way. */
  readonly isNamed: boolean;
  /** A part of a message whose tokens its text does not tell. */
  readonly isMedia: boolean;
  /** Whether some of its names decide something: others that may be taken for them are for the other way as well. */
  readonly isDecisive: boolean;
  /** For what has no name of these. */
  readonly other: MemberRule;
  readonly #members: readonly (MemberRule | undefined)[];
  readonly #mask: number;
  /** Of the bare forms of the names that decide something. */
  readonly #bareHashes: Int32Array;

  constructor(
    members: readonly MemberRule[],
    other: MemberRule,
    names: TextRule | undefined,
    isMedia: boolean,
    decisive: readonly string[],
  ) {
    this.#bareHashes = Int32Array.from(decisive, (name) => hashOf(Buffer.from(bareName(name))));
    this.isDecisive = decisive.length > 0;
    this.required = members.filter(({ isRequired }) => isRequired).length;
    this.other = other;
    this.names = names;
    this.isNamed = members.length > 0;
    this.isMedia = isMedia;
    const slots = 2 ** Math.ceil(Math.log2(2 * members.length + 1));
    const table = new Array<MemberRule | undefined>(slots).fill(undefined);
    this.#mask = slots - 1;
    for (const member of members) {
      let slot = member.hash & this.#mask;
      while (table[slot]) slot = (slot + 1) & this.#mask;
      table[slot] = member;
    }
    this.#members = table;
  }

  /** Whether some parser may take a name, which is none of its members', for one that decides something. */
  mayDecide(bareHash: number): boolean {
    for (let i = 0; i < this.#bareHashes.length; i++) if (this.#bareHashes[i] === bareHash) return true;
    return false;
  }

  /** Of the name that stands there. */
  find(hash: number, start: number, end: number): MemberRule | undefined {
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const member = this.#members[slot];
      if (member === undefined || (member.hash === hash && isSame(member.name, start, end))) return member;
    }
  }
}

/** What is to be done with a member beyond its shape: it counts, is noted, or only the other way can read it. */
export interface MemberUse {
  readonly as?: "json" | "prompt" | "unreadable";
  readonly note?: number;
  /** Names of its own members that the gateway goes by. */
  readonly decisive?: readonly string[];
  /** Of its own members, or those of its items. */
  readonly members?: MemberUses;
  /** Texts that may stand there: all others are for the other way. */
  readonly only?: readonly string[];
}
export type MemberUses = Readonly<Record<string, MemberUse>>;

/** Of the first byte of a value, and of its type; `noKind` where no value begins so. */
export const [noKind, textKind, numberKind, objectKind, arrayKind, trueKind, falseKind, nullKind] = [
  0, 1, 2, 3, 4, 5, 6, 7,
];
const samples: readonly unknown[] = [undefined, "", 0, {}, [], true, false, null];

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
/** Tools of other types may lead to other models. */
const knownTools: MemberUse = { members: { type: { only: ["function"] } } };
const textTypes: readonly unknown[] = ["text", "refusal"];

const unreadable = new ValueRule();
/** Whatever stands there. */
export const anyValue = openRule();

/** The rule of a whole body; `decisive`: as of `MemberUse`. */
export function bodyRule({ objects }: Shape, uses: MemberUses, decisive: readonly string[]): ValueRule {
  const rule = new ValueRule();
  if (objects !== undefined && objects.tag === undefined) {
    const all = { ...uses, tools: { ...uses["tools"], ...knownTools } };
    rule.object = objectRule(objects, all, false, false, decisive);
  }
  return rule;
}

function openRule(): ValueRule {
  const rule = new ValueRule();
  rule.isOpen = rule.allowsTrue = rule.allowsFalse = rule.allowsNull = true;
  rule.object = new ObjectRule([], memberRule("", rule, {}), undefined, false, []);
  rule.arrays = samples.map(() => ({ least: 0, most: Number.POSITIVE_INFINITY, items: rule }));
  return rule;
}

function valueRule(shape: Shape, isPrompt: boolean, use: MemberUse = {}): ValueRule {
  // What a model is shown, and what is looked into, has a shape, or is read in the other way.
  if (shape.isOpen) return isPrompt || use.members ? unreadable : anyValue;
  const { texts = [], numbers = [], arrays, objects } = shape;
  const rule = new ValueRule();
  if (use.only) {
    rule.texts = [textRule({ least: 0, most: 0, pattern: undefined, values: new Set(use.only) })];
    return rule;
  }
  rule.isPrompt = isPrompt;
  rule.texts = texts.filter(isReadable).map(textRule);
  rule.numbers = numbers;
  rule.allowsTrue = fits(shape, true);
  rule.allowsFalse = fits(shape, false);
  rule.allowsNull = fits(shape, null);
  if (arrays) rule.arrays = arrayRules(arrays, isPrompt, use);
  // An object of which nothing is known may be an image as well as a text.
  if (objects === undefined || (isPrompt && objects.tag === undefined && objects.isOpen)) return rule;
  if (objects.tag === undefined)
    rule.object = objectRule(objects, isPrompt ? promptUses : (use.members ?? {}), isPrompt, false, use.decisive);
  else rule.tag = tagRule(objects, isPrompt);
  return rule;
}

/** `isShown`: a model is shown as JSON what has no name that is known. */
function objectRule(
  shape: ObjectShape,
  uses: MemberUses,
  isShown = false,
  isMedia = false,
  decisive: readonly string[] = [],
): ObjectRule | undefined {
  const { members, names, others } = shape;
  if (names !== undefined && !isReadable(names)) return undefined;
  const rules: MemberRule[] = [];
  if (members.size > 0)
    for (const name of [...refusedNames, ...doubtfulNames]) rules.push(memberRule(name, unreadable, {}));
  for (const name of new Set([...members.keys(), ...Object.keys(uses), ...decisive])) {
    const known = members.get(name);
    const use = Object.hasOwn(uses, name) ? (uses[name] ?? {}) : {};
    const isPrompt = use.as === "prompt";
    const value = valueRule(known?.shape ?? openShape, isPrompt, use);
    rules.push(memberRule(name, value, use, known?.isRequired));
  }
  const other = memberRule("", valueRule(others, false), isShown ? { as: "json" } : {});
  return new ObjectRule(rules, other, names && textRule(names), isMedia, decisive);
}

function memberRule(text: string, value: ValueRule, { as, note = -1 }: MemberUse, isRequired = false): MemberRule {
  const name = Buffer.from(text);
  return {
    name,
    hash: hashOf(name),
    value: as === "unreadable" ? unreadable : value,
    isRequired,
    isJson: as === "json",
    note,
  };
}

function tagRule({ tag, byTag }: TaggedRules, isPrompt: boolean): TagRule {
  const name = Buffer.from(tag);
  const isType = tag === "type";
  const options: { value: Uint8Array; rule: ObjectRule }[] = [];
  for (const [value, shape] of byTag) {
    const uses = !isPrompt ? {} : isType ? partUses : promptUses;
    const isMedia = isPrompt && isType && !textTypes.includes(value);
    const rule = objectRule(shape, uses, isPrompt && !isMedia, isMedia);
    if (typeof value === "string" && rule) options.push({ value: Buffer.from(value), rule });
  }
  return { name, hash: hashOf(name), options };
}

function arrayRules(shapes: readonly ArrayShape[], isPrompt: boolean, use: MemberUse): ArrayRule[] {
  const rules = new Map<unknown, ArrayRule>();
  for (const shape of shapes) {
    rules.set(shape, { least: shape.least, most: shape.most, items: valueRule(shape.items, isPrompt, use) });
  }
  const [first] = shapes;
  return samples.map((sample) => {
    const shape = shapes.length === 1 ? first : byFirstItem(shapes, sample);
    return rules.get(shape) ?? { least: 0, most: 0, items: unreadable };
  });
}

/** Whether its bytes can tell: a text has at least one byte a character, and a text of several bytes at least one. */
function isReadable({ least, pattern }: TextShape): boolean {
  return least <= 1 && pattern === undefined;
}

function textRule({ least, most, values }: TextShape): TextRule {
  const written = values && [...values].filter((value) => typeof value === "string").map((value) => Buffer.from(value));
  return { least, most, values: written };
}
