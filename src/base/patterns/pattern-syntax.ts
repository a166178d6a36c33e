// Parses a pattern: the subset of regular expressions that can be matched in linear time on any text.

/** A set of UTF-16 code units, as ordered pairs of first and last. */
export type Units = readonly number[];

/** Conditions on the position between two characters, as bits. */
export const assertions = { boundary: 1, inside: 2, start: 4, end: 8 } as const;

export type PatternNode =
  | { readonly type: "units"; readonly units: Units }
  | { readonly type: "all"; readonly parts: readonly PatternNode[] }
  | { readonly type: "either"; readonly parts: readonly PatternNode[] }
  | { readonly type: "repeat"; readonly part: PatternNode; readonly least: number; readonly most: number }
  | { readonly type: "assertion"; readonly holds: number };

/** A fault of a pattern. `message` continues a sentence that begins with the pattern, such as "is too long". */
export class PatternFault extends Error {}

const maxCharacters = 2_000;
const maxRepeats = 1_000;
const lastUnit = 0xffff;
const digits: Units = [0x30, 0x39];
const word: Units = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
const space: Units = [9, 13, 32, 32, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f];
const lineEnds: Units = [10, 10, 13, 13, 0x2028, 0x2029];
const controls: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, "0": 0 };

export function isWordUnit(unit: number): boolean {
  return (
    (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a) || (unit >= 0x30 && unit <= 0x39) || unit === 0x5f
  );
}

/** Parses a pattern. Throws a PatternFault if the pattern is invalid or too long. */
export function readPattern(source: string): PatternNode {
  if (source.length > maxCharacters) throw new PatternFault(`is longer than ${maxCharacters} characters`);
  return new Reader(source).whole();
}

class Reader {
  readonly #source: string;
  #at = 0;
  #ignoresCase = false;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
  }

  whole(): PatternNode {
    if (this.#takes("(?i)")) this.#ignoresCase = true;
    const node = this.#either();
    if (this.#at < this.#source.length) throw this.#fault("has a `)` that closes nothing");
    return node;
  }

  #either(): PatternNode {
    if (++this.#depth > 100) throw this.#fault("has groups more than 100 deep");
    const parts = [this.#all()];
    while (this.#takes("|")) parts.push(this.#all());
    this.#depth--;
    return parts.length === 1 ? (parts[0] as PatternNode) : { type: "either", parts };
  }

  #all(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#next)) parts.push(this.#repeated());
    return { type: "all", parts };
  }

  get #next(): string {
    return this.#source[this.#at] ?? "";
  }

  #takes(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #repeated(): PatternNode {
    const part = this.#one();
    const [least, most] = this.#times();
    if (least === 1 && most === 1) return part;
    if (part.type === "assertion") throw this.#fault("repeats an assertion");
    if (least > most) throw this.#fault("has a repetition whose bounds are the wrong way round");
    // A lazy quantifier finds the same matches, so its `?` is skipped.
    this.#takes("?");
    if ("*+?".includes(this.#next) && this.#next !== "") throw this.#fault("repeats a repetition");
    return { type: "repeat", part, least, most };
  }

  #times(): readonly [number, number] {
    if (this.#takes("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.#takes("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.#takes("?")) return [0, 1];
    const bounds = /^\{(\d{1,5})(,(\d{0,5}))?\}/.exec(this.#source.slice(this.#at, this.#at + 16));
    if (!bounds) return [1, 1];
    this.#at += bounds[0].length;
    const least = Number(bounds[1]);
    const most = bounds[2] === undefined ? least : bounds[3] === "" ? Number.POSITIVE_INFINITY : Number(bounds[3]);
    if (least > maxRepeats || (most > maxRepeats && most !== Number.POSITIVE_INFINITY)) {
      throw this.#fault(`repeats more than ${maxRepeats} times`);
    }
    return [least, most];
  }

  #one(): PatternNode {
    if (this.#takes("(")) return this.#group();
    if (this.#takes("[")) return { type: "units", units: this.#set() };
    if (this.#takes(".")) return { type: "units", units: inverse(lineEnds) };
    if (this.#takes("^")) return { type: "assertion", holds: assertions.start };
    if (this.#takes("$")) return { type: "assertion", holds: assertions.end };
    if ("*+?".includes(this.#next)) throw this.#fault("repeats nothing");
    if (this.#takes("\\b")) return { type: "assertion", holds: assertions.boundary };
    if (this.#takes("\\B")) return { type: "assertion", holds: assertions.inside };
    return { type: "units", units: this.#cased(this.#takes("\\") ? this.#escape() : this.#literal()) };
  }

  #group(): PatternNode {
    if (this.#takes("?=") || this.#takes("?!") || this.#takes("?<=") || this.#takes("?<!")) {
      throw this.#fault("looks ahead or behind, which cannot be matched in linear time");
    }
    if (!this.#takes("?:")) {
      const name = /^\?P?<[A-Za-z_]\w{0,50}>/.exec(this.#source.slice(this.#at, this.#at + 60));
      if (name) this.#at += name[0].length;
      else if (this.#next === "?") throw this.#fault("has a group of a kind that is not known");
    }
    const node = this.#either();
    if (!this.#takes(")")) throw this.#fault("has a `(` that nothing closes");
    return node;
  }

  #literal(): Units {
    const unit = this.#source.charCodeAt(this.#at++);
    return [unit, unit];
  }

  /** Reads the characters after a backslash. */
  #escape(): Units {
    const letter = this.#next;
    if (letter === "") throw this.#fault("ends with a backslash");
    if (/[1-9k]/.test(letter)) {
      throw this.#fault("refers back to a group, which cannot be matched in linear time");
    }
    this.#at++;
    const kinds = { d: digits, w: word, s: space } as const;
    const kind = kinds[letter.toLowerCase() as keyof typeof kinds];
    if (kind) return letter === letter.toLowerCase() ? kind : inverse(kind);
    const control = controls[letter];
    if (control !== undefined) return [control, control];
    if (letter === "x" || letter === "u") return this.#numbered(letter === "x" ? 2 : 4);
    if (/[A-Za-z]/.test(letter)) throw this.#fault(`has \`\\${letter}\`, which is not known`);
    const unit = letter.charCodeAt(0);
    return [unit, unit];
  }

  #numbered(length: number): Units {
    const text = this.#source.slice(this.#at, this.#at + length);
    if (text.length < length || !/^[0-9A-Fa-f]+$/.test(text)) throw this.#fault("has an escape that is not whole");
    this.#at += length;
    const unit = Number.parseInt(text, 16);
    return [unit, unit];
  }

  #set(): Units {
    const isInverse = this.#takes("^");
    const units: number[] = [];
    while (!this.#takes("]")) {
      if (this.#at >= this.#source.length) throw this.#fault("has a `[` that nothing closes");
      const from = this.#member();
      if (this.#next === "-" && !this.#source.startsWith("-]", this.#at) && from.length === 2 && from[0] === from[1]) {
        this.#at++;
        const to = this.#member();
        const [first = 0, last = 0] = [from[0], to.at(-1)];
        if (to.length !== 2 || to[0] !== to[1] || last < first) throw this.#fault("has a range that is none");
        units.push(first, last);
      } else {
        units.push(...from);
      }
    }
    const ordered = this.#cased(merged(units));
    return isInverse ? inverse(ordered) : ordered;
  }

  #member(): Units {
    if (this.#takes("\\b")) return [8, 8];
    if (this.#takes("\\")) return this.#escape();
    const [unit = 0] = this.#literal();
    if (unit >= 0xd800 && unit <= 0xdfff) throw this.#fault("has a character beyond U+FFFF in a set");
    return [unit, unit];
  }

  /** Adds the other case of letters if case is ignored. */
  #cased(units: Units): Units {
    if (!this.#ignoresCase) return units;
    const both = [...units];
    for (let index = 0; index < units.length; index += 2) {
      const [first = 0, last = 0] = [units[index], units[index + 1]];
      // A range this wide already includes both cases, or is not of letters.
      if (last - first > 1_000) continue;
      for (let unit = first; unit <= last; unit++) {
        const letter = String.fromCharCode(unit);
        for (const other of [letter.toLowerCase(), letter.toUpperCase()]) {
          if (other.length === 1) both.push(other.charCodeAt(0), other.charCodeAt(0));
        }
      }
    }
    return merged(both);
  }

  #fault(what: string): PatternFault {
    return new PatternFault(`${what} (at character ${this.#at + 1})`);
  }
}

/** Sorts the ranges and joins those that touch. */
function merged(units: Units): Units {
  const pairs: [number, number][] = [];
  for (let index = 0; index < units.length; index += 2) pairs.push([units[index] ?? 0, units[index + 1] ?? 0]);
  pairs.sort((one, other) => one[0] - other[0]);
  const all: number[] = [];
  for (const [first, last] of pairs) {
    const before = all.at(-1);
    if (before !== undefined && first <= before + 1) all[all.length - 1] = Math.max(before, last);
    else all.push(first, last);
  }
  return all;
}

function inverse(units: Units): Units {
  const others: number[] = [];
  let from = 0;
  for (let index = 0; index < units.length; index += 2) {
    const [first = 0, last = 0] = [units[index], units[index + 1]];
    if (first > from) others.push(from, first - 1);
    from = last + 1;
  }
  if (from <= lastUnit) others.push(from, lastUnit);
  return others;
}
