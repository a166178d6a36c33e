// Rules for the values in a body. The byte scan and the validation after a complete parse use the same rules.
import { isSame } from "../../base/text/json-bytes.ts";
import type { Node } from "./json-schema.ts";

/** Kinds of JSON values. `noKind` stands for a byte that cannot begin a value. */
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

/** The rule of a value: the allowed alternatives for each kind of value. */
export class ValueRule {
  /** True if every value is allowed, so that no check is needed. */
  isOpen = false;
  /**
   * True if the byte scan accepts every value. If `isOpen` is true and this is false, the value requires a complete
   * parse.
   */
  readsAnything = false;
  /** True if the model reads all texts and numbers inside the value. */
  isPrompt = false;
  /**
   * True if the model also reads all literals and member names inside the value, so that their tokens are counted too.
   */
  isShown = false;
  /**
   * True if the text may be the name of a media type, which decides the kind of its object. A media type requires a
   * complete parse.
   */
  isType = false;
  texts: readonly TextRule[] = [];
  numbers: readonly NumberRule[] = [];
  object: ObjectRule | undefined;
  tag: TagRule | undefined;
  /** Rules of arrays, by the kind of the array's first item. Undefined if the value cannot be an array. */
  arrays: readonly ArrayRule[] | undefined;
  allowsTrue = false;
  allowsFalse = false;
  allowsNull = false;
  /** The alternatives as nodes of JSON Schema, for error messages. */
  readonly options: readonly Node[];

  constructor(options: readonly Node[]) {
    this.options = options;
  }

  /** Returns the rule for this object, or undefined if the object is none of the alternatives. */
  objectFor(value: Readonly<Record<string, unknown>>): ObjectRule | undefined {
    const { tag } = this;
    if (tag === undefined) return this.object;
    const found = value[tag.name];
    return tag.byValue.get(found) ?? (typeof found === "string" ? tag.others : undefined);
  }

  /** Returns the rule for this array. The kind of its first item decides which rule applies. */
  arrayFor(value: readonly unknown[]): ArrayRule | undefined {
    return this.arrays?.[kindOf(value[0])];
  }

  /** Returns the rules of all kinds of objects that are allowed. */
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
  /** Length in bytes up to which a text is certainly allowed. -1 if the number of bytes cannot decide this. */
  readonly maxBytes: number;
  readonly pattern: RegExp | undefined;
  /** The allowed texts. Undefined if any text is allowed. */
  readonly values: ReadonlySet<unknown> | undefined;
  /** The allowed texts as UTF-8, for the byte scan. */
  readonly written: readonly Uint8Array[] | undefined;
}

export interface NumberRule {
  readonly isWhole: boolean;
  readonly least: number;
  /** True if the number must be greater than `least`, and must not equal it. */
  readonly isAbove: boolean;
  readonly most: number;
  readonly values: ReadonlySet<unknown> | undefined;
}

export interface ArrayRule {
  readonly least: number;
  readonly most: number;
  readonly items: ValueRule;
  /** The array as a node of JSON Schema, for error messages. */
  readonly node: Node;
}

export interface MemberRule {
  readonly name: string;
  /** The name in UTF-8. `hash` is its hash. */
  readonly bytes: Uint8Array;
  readonly hash: number;
  readonly value: ValueRule;
  readonly isRequired: boolean;
  /** True if the model reads the value as JSON. */
  readonly isJson: boolean;
  /** True if the tokens of the member's name are counted too. */
  readonly isShown: boolean;
  /** True if the member identifies the kind of its object. See `ObjectRule.isIdentified`. */
  readonly identifies: boolean;
  /** Index of the member in `BodyNotes`. -1 if the member is not recorded. */
  readonly note: number;
}

/** The rule for an object whose kind is decided by the value of one member, the tag. */
export interface TagRule {
  readonly name: string;
  /** The name in UTF-8. `hash` is its hash. */
  readonly bytes: Uint8Array;
  readonly hash: number;
  readonly byValue: ReadonlyMap<unknown, ObjectRule>;
  /** The rule for an object whose tag has any other text. Undefined if no other text is allowed. */
  readonly others: ObjectRule | undefined;
  /** The texts of `byValue` in UTF-8, with their rules. */
  readonly written: readonly { readonly value: Uint8Array; readonly rule: ObjectRule }[];
  /** The allowed tags as nodes of JSON Schema, for error messages. */
  readonly allowed: readonly Node[];
}

export interface ObjectParts {
  /** Members of the schema. */
  readonly members: readonly MemberRule[];
  /** Members that the schema does not contain, but that the byte scan must recognise. */
  readonly beside: readonly MemberRule[];
  readonly other: MemberRule;
  readonly names: ValueRule | undefined;
  readonly checksAll: boolean;
  readonly isReadable: boolean;
  /**
   * True if the object has known names, for which a parser may mistake other names. Default: true if it has any members
   * or other names to recognise.
   */
  readonly isNamed?: boolean;
  readonly isMedia: boolean;
  /** Hashes of the names that decide the cost of a request or how it is handled. The names are in their bare form. */
  readonly decisiveHashes: Int32Array;
}

export class ObjectRule {
  readonly members: ReadonlyMap<string, MemberRule>;
  readonly required: readonly MemberRule[];
  /** The rule for members whose name is not listed. */
  readonly other: MemberRule;
  /** The rule for the names themselves. Undefined if any name is allowed. */
  readonly names: ValueRule | undefined;
  /**
   * True if every member of the object is checked, in the order of the object. Otherwise only the members of the schema
   * are checked, in the order of the schema.
   */
  readonly checksAll: boolean;
  /** True if the byte scan may read the object. */
  readonly isReadable: boolean;
  /**
   * True if the object has known names. A name that another parser may mistake for a known name requires a complete
   * parse.
   */
  readonly isNamed: boolean;
  /** True if the byte scan requires that the object has a member with `identifies` whose value is not null. */
  readonly isIdentified: boolean;
  /** True if the object is a part of a message whose token count cannot be derived from its text. */
  readonly isMedia: boolean;
  /**
   * True if some names decide the cost of a request or how it is handled. A name that a parser may mistake for one of
   * them requires a complete parse.
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

  /**
   * Reports whether some parser may read an unknown name as a name that decides the cost of a request or how it is
   * handled.
   */
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
