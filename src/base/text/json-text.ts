// Reads and edits the top level of a JSON object as text, so that all other bytes stay the same.

export interface Member {
  /** The offset of the member's opening quote. */
  keyStart: number;
  /** The offsets of the member's value: [valueStart, valueEnd). */
  valueStart: number;
  valueEnd: number;
}

/** The members of an object by name, in their order. */
export interface Members extends Iterable<[string, Member]> {
  readonly size: number;
  /** Number of names in all objects of the text, including the top level. */
  readonly names: number;
  get(name: string): Member | undefined;
  keys(): Iterable<string>;
}

/** `message` completes the sentence "The body cannot be used: …". */
export class JsonTextError extends Error {
  override readonly name = "JsonTextError";
  /** The field that is wrong. Undefined if the whole text is wrong. */
  readonly field: string | undefined;

  constructor(message: string, field?: string) {
    super(message);
    this.field = field;
  }
}

/** Limits on the content of a JSON text. */
export interface JsonLimits {
  /** Maximum levels of nested objects and arrays. */
  depth: number;
  /** Maximum members of the top-level object. */
  members: number;
  /** Maximum names in all objects together. */
  names: number;
  /** Maximum commas in the whole text. Each array or object has one comma less than it has values. */
  values: number;
  /** Maximum objects and arrays together. Each costs the parser, and later code, many times its two bytes. */
  containers: number;
}

/**
 * Limits for request bodies: several times the content of any real request. A body beyond them is an attempt to
 * overload the process.
 */
export const bodyMass = { members: 1_000, names: 100_000, values: 2_000_000, containers: 200_000 } as const;

const unlimited: JsonLimits = {
  depth: Number.POSITIVE_INFINITY,
  members: Number.POSITIVE_INFINITY,
  names: Number.POSITIVE_INFINITY,
  values: Number.POSITIVE_INFINITY,
  containers: Number.POSITIVE_INFINITY,
};

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const colon = 0x3a;
const comma = 0x2c;

/**
 * Finds the members of the top-level object in one pass. Deep nesting is refused, because the parser would recurse into
 * it. Millions of values are refused, because the parser would create them. Repeated names are refused, because the
 * model server might read another member than the one that was checked. Names below the top level are only counted
 * (`json-names.ts`). JSON.parse refuses all other faults.
 */
export function scanObject(text: string, limits: JsonLimits = unlimited): Members {
  const { depth: maxDepth, names: maxNames, values: maxValues, containers: maxContainers } = limits;
  const { length } = text;
  const members = new MemberList(limits.members);
  let depth = 0;
  let isObject = false;
  let names = 0;
  let values = 0;
  let containers = 0;
  /** True if the next string is the name of a member. */
  let nameIsNext = false;
  let name = "";
  let keyStart = 0;
  /** Offset of the value whose end was not found yet, or -1. */
  let valueStart = -1;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code === quote) {
      const end = endOfString(text, i);
      if (!nameIsNext) {
        i = end - 1;
        continue;
      }
      nameIsNext = false;
      keyStart = i;
      name = unquote(text, i, end);
      valueStart = end;
      for (let next = text.charCodeAt(end); next === colon || next <= 0x20; next = text.charCodeAt(++valueStart)) {
        if (next === colon) names++;
      }
      if (names > maxNames) throw new JsonTextError(`it holds more than ${maxNames} named fields`);
      i = valueStart - 1;
    } else if (code === comma) {
      if (++values > maxValues) throw new JsonTextError(`it holds more than ${maxValues} values`);
      if (depth !== 1) continue;
      nameIsNext = isObject;
      if (valueStart >= 0) members.add(name, keyStart, valueStart, trimEnd(text, valueStart, i));
      valueStart = -1;
    } else if (code === colon) {
      if (++names > maxNames) throw new JsonTextError(`it holds more than ${maxNames} named fields`);
    } else if (code === openBrace || code === openBracket) {
      if (depth === 0) nameIsNext = isObject = code === openBrace;
      if (++depth > maxDepth) throw new JsonTextError(`the JSON is nested more than ${maxDepth} levels deep`);
      if (++containers > maxContainers) {
        throw new JsonTextError(`it holds more than ${maxContainers} objects and arrays`);
      }
    } else if ((code === closeBrace || code === closeBracket) && --depth <= 0) {
      if (valueStart >= 0) members.add(name, keyStart, valueStart, trimEnd(text, valueStart, i));
      // The object has ended. If more text follows, JSON.parse refuses it.
      break;
    }
  }
  members.names = names;
  return members;
}

/** If an object has this many members, names are looked up in a Set, which is then faster than comparing each. */
const fewMembers = 16;

/** A list of members. It costs a third of what a Map costs, because a Map must hash each name. */
class MemberList implements Members {
  names = 0;
  readonly #limit: number;
  readonly #names: string[] = [];
  /** Three numbers for each member: the start of its key, and the start and end of its value. */
  readonly #offsets: number[] = [];
  #known: Set<string> | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#names.length;
  }

  get(name: string): Member | undefined {
    const index = this.#names.indexOf(name);
    return index < 0 ? undefined : this.#at(index);
  }

  keys(): Iterable<string> {
    return this.#names;
  }

  *[Symbol.iterator](): Generator<[string, Member]> {
    for (const [index, name] of this.#names.entries()) yield [name, this.#at(index)];
  }

  /** Adds a member. Throws a JsonTextError if the name is repeated or there are too many members. */
  add(name: string, keyStart: number, valueStart: number, valueEnd: number): void {
    const names = this.#names;
    if (this.#has(name)) {
      const shown = name.length > 64 ? `${name.slice(0, 64)}…` : name;
      throw new JsonTextError(`the field \`${shown}\` appears twice; send it once`);
    }
    if (names.length >= this.#limit) throw new JsonTextError(`it has more than ${this.#limit} fields`);
    names.push(name);
    this.#offsets.push(keyStart, valueStart, valueEnd);
  }

  #has(name: string): boolean {
    const names = this.#names;
    if (names.length >= fewMembers) {
      this.#known ??= new Set(names);
      if (this.#known.has(name)) return true;
      this.#known.add(name);
      return false;
    }
    for (let i = 0; i < names.length; i++) if (names[i] === name) return true;
    return false;
  }

  #at(index: number): Member {
    const [keyStart = 0, valueStart = 0, valueEnd = 0] = this.#offsets.slice(3 * index, 3 * index + 3);
    return { keyStart, valueStart, valueEnd };
  }
}

/**
 * Returns `text` with top-level members replaced or added (a string is JSON text) or removed (null). `members` must
 * come from `scanObject` of the same text.
 */
export function editObject(text: string, members: Members, edits: Readonly<Record<string, string | null>>): string {
  const cuts: { start: number; end: number; insert: string }[] = [];
  let added = "";
  let removed = 0;
  for (const [name, value] of Object.entries(edits)) {
    const member = members.get(name);
    if (member === undefined) {
      if (value !== null) added += `${JSON.stringify(name)}:${value},`;
    } else if (value !== null) {
      cuts.push({ start: member.valueStart, end: member.valueEnd, insert: value });
    } else {
      removed++;
      cuts.push({ ...removalRange(text, member), insert: "" });
    }
  }
  let result = "";
  let position = 0;
  for (const cut of cuts.sort((a, b) => a.start - b.start)) {
    result += text.slice(position, cut.start) + cut.insert;
    position = cut.end;
  }
  result += text.slice(position);
  if (removed > 0) result = result.replace(/,(\s*\}\s*)$/, "$1");
  if (added === "") return result;
  const open = result.indexOf("{") + 1;
  if (members.size === removed) added = added.slice(0, -1);
  return result.slice(0, open) + added + result.slice(open);
}

/**
 * Returns the range to remove for a member, with the comma after it. The caller fixes the comma before the closing
 * brace.
 */
function removalRange(text: string, member: Member): { start: number; end: number } {
  let end = member.valueEnd;
  while (end < text.length && text.charCodeAt(end) <= 0x20) end++;
  return { start: member.keyStart, end: text.charCodeAt(end) === comma ? end + 1 : member.valueEnd };
}

/** Returns the offset after the closing quote of the string that opens at `start`. */
export function endOfString(text: string, start: number): number {
  for (let i = text.indexOf('"', start + 1); i >= 0; i = text.indexOf('"', i + 1)) {
    let slash = i - 1;
    while (text.charCodeAt(slash) === backslash) slash--;
    // After an even number of backslashes, the quote is not escaped.
    if ((i - slash) % 2 === 1) return i + 1;
  }
  return text.length;
}

/** Decodes a name, which may contain escapes (`"mod\u0065l"`). JSON.parse refuses a malformed name. */
function unquote(text: string, start: number, end: number): string {
  const name = text.slice(start + 1, end - 1);
  if (!name.includes("\\")) return name;
  const quoted = text.slice(start, end);
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted;
  }
}

function trimEnd(text: string, start: number, end: number): number {
  let last = end;
  while (last > start && text.charCodeAt(last - 1) <= 0x20) last--;
  return last;
}
