// Numbers of rows by id, from 0 on: of an id that ends in a UUID no more is kept than its 16 bytes.
import { noRow, WordTable } from "./word-table.ts";

const words = 4;
const digitsOfWord = 8;
const fewRows = 64;
const uuidLength = 36;
const hyphenPlaces = [8, 13, 18, 23];
const digitPlaces = Uint8Array.from([...Array(uuidLength).keys()].filter((place) => !hyphenPlaces.includes(place)));
const hyphen = 0x2d;
/** By character code: the value of a lower-case digit, or `noDigit`; an upper-case one makes another id. */
const noDigit = 0xff;
const digitValues = new Uint8Array(128).fill(noDigit);
for (let value = 0; value < 16; value++) digitValues[value.toString(16).charCodeAt(0)] = value;

export class IdRows {
  readonly #prefix: string;
  readonly #table = new WordTable(words, fewRows);
  /** Those of another form. */
  readonly #others = new Map<string, number>();
  readonly #otherIds = new Map<number, string>();
  readonly #free: number[] = [];
  #given = 0;

  /** `prefix`: what most ids begin with, before their UUID; others cost what their text does. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Number of ids. */
  get size(): number {
    return this.#given - this.#free.length;
  }

  /** All rows are below it, those that are free included. */
  get end(): number {
    return this.#given;
  }

  /** The row of an id; `noRow` where it has none. */
  find(id: string): number {
    return this.#seek(id) ? this.#table.find() : (this.#others.get(id) ?? noRow);
  }

  /** Gives a row to an id that has none: one that is free, or the next. */
  add(id: string): number {
    const row = this.#free.pop() ?? this.#given++;
    if (this.#seek(id)) {
      const { room } = this.#table;
      if (row >= room) this.#table.makeRoomFor(Math.max(2 * room, row + 1));
      this.#table.add(row);
    } else {
      this.#others.set(id, row);
      this.#otherIds.set(row, id);
    }
    return row;
  }

  /** A row that was given and not taken away since: another id may get it. */
  remove(row: number): void {
    const other = this.#otherIds.get(row);
    if (other === undefined) {
      this.#table.remove(row);
    } else {
      this.#others.delete(other);
      this.#otherIds.delete(row);
    }
    this.#free.push(row);
  }

  /** Whether the id is of the usual form: then its words are looked for. Each text has words of its own. */
  #seek(id: string): boolean {
    const from = id.length - uuidLength;
    if (from !== this.#prefix.length || !id.startsWith(this.#prefix)) return false;
    for (const place of hyphenPlaces) if (id.charCodeAt(from + place) !== hyphen) return false;
    const { sought } = this.#table;
    for (let word = 0; word < words; word++) {
      let bits = 0;
      for (let nth = word * digitsOfWord; nth < (word + 1) * digitsOfWord; nth++) {
        const digit = digitValues[id.charCodeAt(from + (digitPlaces[nth] ?? 0))] ?? noDigit;
        if (digit === noDigit) return false;
        bits = (bits << 4) | digit;
      }
      // The last digits of a UUID are random: they say where in the table it is.
      sought[words - 1 - word] = bits;
    }
    return true;
  }
}
