// Rules for the values in a body, shared by the byte scan and by validation after a full parse.
import { isSame } from "../../base/text/json-bytes.ts";
import type { Node } from "./json-schema.ts";

/** Kinds of values, by first byte or by type. `noKind` stands for a byte that cannot begin a value. */
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

/** The rule of a value: the allowed alternatives by the kind of the value. */
export class ValueRule {
  /** True if any value fits without a check. */
  isOpen = false;
  /** True if the byte scan accepts any value. If `isOpen` is set without this flag, the value requires a full parse. */
  readsAnything = false;
  /** True if the model reads each text and number inside the value. */
  isPrompt = false;
  /**
   * True if the model also reads each literal and member name inside the value, so that their tokens are counted too.
   */
  isShown = false;
  /** True if the text may name a media type for its object; a media type requires a full parse. */
  isType = false;
  texts: readonly TextRule[] = [];
  numbers: readonly NumberRule[] = [];
  object: ObjectRule | undefined;
  tag: TagRule | undefined;
  /** Rules of arrays by the kind of the first item; undefined if the value cannot be an array. */
  arrays: readonly ArrayRule[] | undefined;
  allowsTrue = false;
  allowsFalse = false;
  allowsNull = false;
  /** Alternatives as JSON Schema nodes, for error messages. */
  readonly options: readonly Node[];

  constructor(options: readonly Node[]) {
    this.options = options;
  }

  /** Returns the rule for this object; undefined if the object fits no alternative. */
  objectFor(value: Readonly<Record<string, unknown>>): ObjectRule | undefined {
    const { tag } = this;
    if (tag === undefined) return this.object;
    const found = value[tag.name];
    return tag.byValue.get(found) ?? (typeof found === "string" ? tag.others : undefined);
  }

  /** Returns the rule for this array. The first item distinguishes several kinds of arrays. */
  arrayFor(value: readonly unknown[]): ArrayRule | undefined {
    return this.arrays?.[kindOf(value[0])];
  }

  /** Returns the rules of all kinds of objects that fit here. */
  get objects(): readonly ObjectRule[] {
    const { tag } = this;
    const rules = tag === undefined ? [this.object] : [...tag.byValue.values(), tag.others];
    return rules.filter((rule) => rule !== undefined);
  }
}

export interface TextRule {
  /** The minimum length in characters. */
  readonly least: number;
  readonly most: number;
  /** Length in bytes up to which a text certainly fits; -1 if the bytes cannot decide. */
  readonly maxBytes: number;
  readonly pattern: RegExp | undefined;
  /** Allowed texts; undefined if any text fits. */
  readonly values: ReadonlySet<unknown> | undefined;
  /** Allowed texts as UTF-8, for the byte scan. */
  readonly written: readonly Uint8Array[] | undefined;
}

export interface NumberRule {
  readonly isWhole: boolean;
  readonly least: number;
  /** True if the number must be greater than `least`, not equal. */
  readonly isAbove: boolean;
  readonly most: number;
  readonly values: ReadonlySet<unknown> | undefined;
}

export interface ArrayRule {
  readonly least: number;
  readonly most: number;
  readonly items: ValueRule;
  /** The array as a JSON Schema node, for error messages. */
  readonly node: Node;
}

export interface MemberRule {
  readonly name: string;
  /** The name as UTF-8, and its hash. */
  readonly bytes: Uint8Array;
  readonly hash: number;
  readonly value: ValueRule;
  readonly isRequired: boolean;
  /** True if the model reads the value as JSON. */
  readonly isJson: boolean;
  /** True if the tokens of the name are counted as well. */
  readonly isShown: boolean;
  /** True if the member identifies the kind of its object; see `ObjectRule.isIdentified`. */
  readonly identifies: boolean;
  /** Index in `BodyNotes`; -1 if the member is not noted. */
  readonly note: number;
}

/** The rule for objects that the value of one member distinguishes. */
export interface TagRule {
  readonly name: string;
  /** The name as UTF-8, and its hash. */
  readonly bytes: Uint8Array;
  readonly hash: number;
  readonly byValue: ReadonlyMap<unknown, ObjectRule>;
  /** The rule for any other text in the tag; undefined if no other text is allowed. */
  readonly others: ObjectRule | undefined;
  /** Texts of `byValue` as UTF-8, with their rules. */
  readonly written: readonly { readonly value: Uint8Array; readonly rule: ObjectRule }[];
  /** Allowed tags as JSON Schema nodes, for error messages. */
  readonly allowed: readonly Node[];
}

export interface ObjectParts {
  /** Members of the schema. */
  readonly members: readonly MemberRule[];
  /** Members that the schema does not list but the byte scan must recognise. */
  readonly beside: readonly MemberRule[];
  readonly other: MemberRule;
  readonly names: ValueRule | undefined;
  readonly checksAll: boolean;
  readonly isReadable: boolean;
  /**
   * True if the object has known names, which a parser may confuse with others. Default: true if it has any members or
   * other names to recognise.
   */
  readonly isNamed?: boolean;
  readonly isMedia: boolean;
  /** Hashes of the names that decide the cost or handling of a request, in their bare form. */
  readonly decisiveHashes: Int32Array;
}

export class ObjectRule {
  readonly members: ReadonlyMap<string, MemberRule>;
  readonly required: readonly MemberRule[];
  /** The rule for members with any other name. */
  readonly other: MemberRule;
  /** The rule of the names themselves; undefined if any name fits. */
  readonly names: ValueRule | undefined;
  /**
   * True if every member of the object is checked, in the object's order. Otherwise only the schema's members are
   * checked, in the schema's order.
   */
  readonly checksAll: boolean;
  /** True if the byte scan may read the object. */
  readonly isReadable: boolean;
  /**
   * True if the object has known names. A name that another parser may confuse with one of them requires a full parse.
   */
  readonly isNamed: boolean;
  /** True if the byte scan requires a member with `identifies` that is not null. */
  readonly isIdentified: boolean;
  /** True if the object is a message part whose token count does not follow from its text. */
  readonly isMedia: boolean;
  /**
   * True if some names decide the cost or handling of a request. A name that a parser may confuse with one of them
   * requires a full parse.
   */
  readonly isDecisive: boolean;
  readonly #table: readonly (MemberRule | undefined)[];
  readonly #mask: number;
  readonly #decisiveHashes: Int32Array;

  constructor(parts: ObjectParts) {
    const { members, beside, other, names, checksAll, isReadable, isMedia, decisiveHashes } = parts;
    this.members = new Map(members.map((member) => [member.name, member]));
    this.required = members.filter(({ isRequired }) => isRequired);
    this.other = other;
    this.names = names;
    this.checksAll = checksAll;
    this.isReadable = isReadable;
    this.isNamed = parts.isNamed ?? members.length + beside.length > 0;
    this.isIdentified = members.some(({ identifies }) => identifies);
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

  /** Reports whether some parser may read an unknown name as one that decides the cost or handling of a request. */
  mayDecide(bareHash: number): boolean {
    for (let i = 0; i < this.#decisiveHashes.length; i++) if (this.#decisiveHashes[i] === bareHash) return true;
    return false;
  }

  /** Returns the member whose name is between the offsets `start` and `end`. */
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
