// What may stand at one place of a body: one form for the pass over its bytes and for the check of what was parsed.
import { isSame } from "../../base/text/json-bytes.ts";
import type { Node } from "./json-schema.ts";

/** By the first byte of a value, and by its type; `noKind` where no value begins so. */
export const [noKind, textKind, numberKind, objectKind, arrayKind, trueKind, falseKind, nullKind] = [
  0, 1, 2, 3, 4, 5, 6, 7,
];

export function kindOf(value: unknown): number {
  if (typeof value === "string") return textKind;
  if (typeof value === "number") return numberKind;
  if (typeof value === "boolean") return value ? trueKind : falseKind;
  if (value === null) return nullKind;
  if (typeof value !== "object") return noKind;
  return Array.isArray(value) ? arrayKind : objectKind;
}

/** Alternatives by the type of what stands there. */
export class ValueRule {
  /** Whether anything at all fits, without a look. */
  isOpen = false;
  /** Whether the pass over the bytes reads anything there; one that is open, and allows nothing else, is to be parsed. */
  readsAnything = false;
  /** Whether each text and number in it is shown to the model. */
  isPrompt = false;
  /** Whether that is so of each word and name in it as well, as of `shownTokens`. */
  isShown = false;
  /** Whether a text there may say that the object around it is media, which is for the other way. */
  isType = false;
  texts: readonly TextRule[] = [];
  numbers: readonly NumberRule[] = [];
  object: ObjectRule | undefined;
  tag: TagRule | undefined;
  /** By the kind of its first item; undefined: no array. */
  arrays: readonly ArrayRule[] | undefined;
  allowsTrue = false;
  allowsFalse = false;
  allowsNull = false;
  /** The alternatives in the words of the schema. */
  readonly options: readonly Node[];

  constructor(options: readonly Node[]) {
    this.options = options;
  }

  /** The rule that is for this object; undefined where it fits none. */
  objectFor(value: Readonly<Record<string, unknown>>): ObjectRule | undefined {
    const { tag } = this;
    if (tag === undefined) return this.object;
    const found = value[tag.name];
    return tag.byValue.get(found) ?? (typeof found === "string" ? tag.others : undefined);
  }

  /** The rule that is for this array: several kinds are told apart by their first item. */
  arrayFor(value: readonly unknown[]): ArrayRule | undefined {
    return this.arrays?.[kindOf(value[0])];
  }

  /** All kinds of objects that may stand there. */
  get objects(): readonly ObjectRule[] {
    const { tag } = this;
    const rules = tag === undefined ? [this.object] : [...tag.byValue.values(), tag.others];
    return rules.filter((rule) => rule !== undefined);
  }
}

export interface TextRule {
  /** Characters. */
  readonly least: number;
  readonly most: number;
  /** Up to so many bytes it has no more characters than allowed, and is known to fit; -1: the bytes cannot tell. */
  readonly maxBytes: number;
  readonly pattern: RegExp | undefined;
  /** The text is one of these. */
  readonly values: ReadonlySet<unknown> | undefined;
  /** Those that the pass over the bytes may read, as they are written. */
  readonly written: readonly Uint8Array[] | undefined;
}

export interface NumberRule {
  readonly isWhole: boolean;
  readonly least: number;
  /** Whether it must be above `least`. */
  readonly isAbove: boolean;
  readonly most: number;
  readonly values: ReadonlySet<unknown> | undefined;
}

export interface ArrayRule {
  readonly least: number;
  readonly most: number;
  readonly items: ValueRule;
  /** The array in the words of the schema. */
  readonly node: Node;
}

export interface MemberRule {
  readonly name: string;
  /** The name as it is written, and its hash. */
  readonly bytes: Uint8Array;
  readonly hash: number;
  readonly value: ValueRule;
  readonly isRequired: boolean;
  /** Whether a model is shown it as JSON. */
  readonly isJson: boolean;
  /** Whether its name is counted, too. */
  readonly isShown: boolean;
  /** Whether it tells what kind of thing the object is; see `ObjectRule.isTold`. */
  readonly isTelling: boolean;
  /** Where it is noted; -1: nowhere. */
  readonly note: number;
}

/** Objects that are told apart by the value of one member. */
export interface TagRule {
  readonly name: string;
  /** The name as it is written, and its hash. */
  readonly bytes: Uint8Array;
  readonly hash: number;
  readonly byValue: ReadonlyMap<unknown, ObjectRule>;
  /** For any other text there; undefined: there may be none. */
  readonly others: ObjectRule | undefined;
  /** Those of `byValue` that are texts, as they are written. */
  readonly written: readonly { readonly value: Uint8Array; readonly rule: ObjectRule }[];
  /** What the tag may be, in the words of the schema. */
  readonly allowed: readonly Node[];
}

export interface ObjectParts {
  /** Those of the schema. */
  readonly members: readonly MemberRule[];
  /** Those that the schema does not know, and the pass over the bytes does not take for any other. */
  readonly beside: readonly MemberRule[];
  readonly other: MemberRule;
  readonly names: ValueRule | undefined;
  readonly looksAtAll: boolean;
  readonly isReadable: boolean;
  /** Left out: where it has members, or names that are looked for beside them. */
  readonly isNamed?: boolean;
  readonly isMedia: boolean;
  /** Names that decide something, in their bare form. */
  readonly decisiveHashes: Int32Array;
}

export class ObjectRule {
  readonly members: ReadonlyMap<string, MemberRule>;
  readonly required: readonly MemberRule[];
  /** For what has no name of these. */
  readonly other: MemberRule;
  /** The rule of the names themselves; undefined: any will do. */
  readonly names: ValueRule | undefined;
  /** Whether each member is looked at in the order of the object, known or not; else those of the schema in its order. */
  readonly looksAtAll: boolean;
  /** Whether the pass over the bytes may read it. */
  readonly isReadable: boolean;
  /** Whether names are known here: then one that another parser may take for them is for the other way. */
  readonly isNamed: boolean;
  /** Whether it must have one of its telling members that is not null, for the pass over the bytes. */
  readonly isTold: boolean;
  /** Whether it is a part of a message whose tokens its text does not tell. */
  readonly isMedia: boolean;
  /** Whether some of its names decide something: others that may be taken for them are for the other way as well. */
  readonly isDecisive: boolean;
  readonly #table: readonly (MemberRule | undefined)[];
  readonly #mask: number;
  readonly #decisiveHashes: Int32Array;

  constructor(parts: ObjectParts) {
    const { members, beside, other, names, looksAtAll, isReadable, isMedia, decisiveHashes } = parts;
    this.members = new Map(members.map((member) => [member.name, member]));
    this.required = members.filter(({ isRequired }) => isRequired);
    this.other = other;
    this.names = names;
    this.looksAtAll = looksAtAll;
    this.isReadable = isReadable;
    this.isNamed = parts.isNamed ?? members.length + beside.length > 0;
    this.isTold = members.some(({ isTelling }) => isTelling);
    this.isMedia = isMedia;
    this.isDecisive = decisiveHashes.length > 0;
    this.#decisiveHashes = decisiveHashes;
    const slots = 2 ** Math.ceil(Math.log2(2 * (members.length + beside.length) + 1));
    const table = new Array<MemberRule | undefined>(slots).fill(undefined);
    this.#mask = slots - 1;
    for (const member of [...beside, ...members]) {
      let slot = member.hash & this.#mask;
      while (table[slot]) slot = (slot + 1) & this.#mask;
      table[slot] = member;
    }
    this.#table = table;
  }

  /** Whether some parser may take a name, which is none of its members', for one that decides something. */
  mayDecide(bareHash: number): boolean {
    for (let i = 0; i < this.#decisiveHashes.length; i++) if (this.#decisiveHashes[i] === bareHash) return true;
    return false;
  }

  /** The member whose name stands there. */
  find(hash: number, start: number, end: number): MemberRule | undefined {
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const member = this.#table[slot];
      if (member === undefined || (member.hash === hash && isSame(member.bytes, start, end))) return member;
    }
  }
}

export function fitsAnyText(rules: readonly TextRule[], value: string): boolean {
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
