// Reads JSON as parsers do that compare names without regard to case, and take the first or the last of several.

/** Fields of a structure that a text is read into, by their names. */
export interface Structure {
  readonly [name: string]: Structure | readonly [Structure] | "value";
}

export interface Leniency {
  /** Two names are the same where this makes the same of them. */
  readonly fold: (name: string) => string;
  /** Which of several values of a field stays. */
  readonly takes: "first" | "last";
}

const kelvin = /\u212a/g;
const longS = /\u017f/g;

/** Go's encoding/json, as of Go 1.25: an exact match first, else by `foldName`; each match is assigned, so the last stays. */
export const asGo: Leniency = {
  fold: (name) => asciiLower(name).replace(longS, "s").replace(kelvin, "k"),
  takes: "last",
};
/** cJSON: texts end at NUL, `cJSON_GetObjectItem` compares by `tolower` and takes the first. */
export const asCjson: Leniency = { fold: (name) => asciiLower(name.split("\0")[0] ?? ""), takes: "first" };
/** Parsers that bring names to lower case by the rules of Unicode, as Jackson does where it is told to. */
export const byLowerCase: Leniency = { fold: (name) => name.toLowerCase(), takes: "last" };
export const byUpperCase: Leniency = { fold: (name) => name.toUpperCase(), takes: "last" };

/** Version 2 of Go's encoding/json, for a field of any case: dashes and underscores count for nothing. */
export const asGoVersion2: Leniency = { fold: (name) => asGo.fold(name).replace(/[-_]/g, ""), takes: "last" };

/** What such a parser makes of the fields of a structure; what it does not know it leaves out. Of valid JSON. */
export function readLeniently(text: string, structure: Structure, leniency: Leniency): unknown {
  return fill(new EntryReader(text).value(), structure, leniency);
}

/** The same fields as JSON.parse reads them. */
export function readExactly(text: string, structure: Structure): unknown {
  return readLeniently(text, structure, { fold: (name) => name, takes: "last" });
}

function asciiLower(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** A value with all members of its objects, in their order. */
type Entries = { readonly members: readonly (readonly [string, Entries])[] } | readonly Entries[] | Scalar;
type Scalar = string | number | boolean | null;

function fill(value: Entries, structure: Structure | readonly [Structure] | "value", leniency: Leniency): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("members" in value) {
    if (structure === "value" || Array.isArray(structure)) return plain(value);
    return fillFields(value.members, structure as Structure, leniency);
  }
  return value.map((item) => fill(item, Array.isArray(structure) ? (structure[0] as Structure) : "value", leniency));
}

function fillFields(
  members: readonly (readonly [string, Entries])[],
  structure: Structure,
  { fold, takes }: Leniency,
): unknown {
  const result: Record<string, unknown> = {};
  for (const [name, value] of members) {
    const field = Object.hasOwn(structure, name)
      ? name
      : Object.keys(structure).find((known) => fold(known) === fold(name));
    const type = field === undefined ? undefined : structure[field];
    if (field === undefined || type === undefined) continue;
    if (takes === "last" || !Object.hasOwn(result, field)) result[field] = fill(value, type, { fold, takes });
  }
  return result;
}

function plain(value: Entries): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("members" in value) return Object.fromEntries(value.members.map(([name, member]) => [name, plain(member)]));
  return value.map(plain);
}

const scalar = /"(?:[^"\\]|\\.)*"|[^\s,\]}]+/y;

/** Unlike JSON.parse it keeps all members of one name. */
class EntryReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): Entries {
    const first = this.#next();
    if (first === "{") return { members: this.#list("}", () => this.#member()) };
    if (first === "[") return this.#list("]", () => this.value());
    scalar.lastIndex = this.#at;
    const [token = ""] = scalar.exec(this.#text) ?? [];
    this.#at += token.length;
    return JSON.parse(token) as Scalar;
  }

  #member(): readonly [string, Entries] {
    const name = String(this.value());
    this.#next();
    this.#at++;
    return [name, this.value()];
  }

  #list<Item>(end: string, read: () => Item): Item[] {
    const items: Item[] = [];
    this.#at++;
    while (this.#next() !== end) {
      if (this.#text[this.#at] === ",") this.#at++;
      else items.push(read());
    }
    this.#at++;
    return items;
  }

  /** The next character that is no space. */
  #next(): string | undefined {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
    return this.#text[this.#at];
  }
}
