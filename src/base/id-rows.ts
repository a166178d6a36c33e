// Maps ids to row numbers from 0 on. An id that consists of the usual prefix and a UUID takes only 16 bytes.
import { noRow, WordTable } from "./word-table.ts";

const words = 4;
const digitsOfWord = 8;
const fewRows = 64;
const uuidLength = 36;
const hyphenIndexes = [8, 13, 18, 23];
const digitIndexes = Uint8Array.from([...Array(uuidLength).keys()].filter((index) => !hyphenIndexes.includes(index)));
const hyphen = 0x2d;
/**
 * `digitValues` has the value of each lower-case hexadecimal digit by character code, or `noDigit`. Upper-case digits
 * count as no digits, because they make a different id.
 */
const noDigit = 0xff;
const digitValues = new Uint8Array(128).fill(noDigit);
for (let value = 0; value < 16; value++) digitValues[value.toString(16).charCodeAt(0)] = value;

export class IdRows {
  readonly #prefix: string;
  readonly #table = new WordTable(words, fewRows);
  /** Rows of ids that are not the prefix and a UUID. */
  readonly #others = new Map<string, number>();
  readonly #otherIds = new Map<number, string>();
  readonly #free: number[] = [];
  #given = 0;

  /** `prefix` is the text before the UUID in most ids. Any other id is stored as text, which takes more memory. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Number of ids. */
  get size(): number {
    return this.#given - this.#free.length;
  }

  /** The number of rows ever used, including rows that are free again. */
  get end(): number {
    return this.#given;
  }

  /** Returns the row of an id, or `noRow`. */
  find(id: string): number {
    return this.#seek(id) ? this.#table.find() : (this.#others.get(id) ?? noRow);
  }

  /** Assigns a row to a new id: a free row, or else the next number. */
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

  /** Frees a row that is in use, so that another id may get it. */
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

  /**
   * Reports whether the id is the prefix and a UUID. If so, writes the UUID's bits to `sought`, for the next call of
   * the table.
   */
  #seek(id: string): boolean {
    const from = id.length - uuidLength;
    if (from !== this.#prefix.length || !id.startsWith(this.#prefix)) return false;
    for (const index of hyphenIndexes) if (id.charCodeAt(from + index) !== hyphen) return false;
    const { sought } = this.#table;
    for (let word = 0; word < words; word++) {
      let bits = 0;
      for (let nth = word * digitsOfWord; nth < (word + 1) * digitsOfWord; nth++) {
        const digit = digitValues[id.charCodeAt(from + (digitIndexes[nth] ?? 0))] ?? noDigit;
        if (digit === noDigit) return false;
        bits = (bits << 4) | digit;
      }
      // The last digits of a UUID are random, so they become the first word, which chooses the slot in the table.
      sought[words - 1 - word] = bits;
    }
    return true;
  }
}
