// A hash table that maps a few 32-bit words to a row number, without an object for each row.

/** Returned by `find` if no row has the words. */
export const noRow = -1;

/**
 * Stores the words in typed arrays: a look-up touches two places in memory, and the garbage collector has nothing to
 * visit. The caller decides which row numbers are free. The first words of rows should differ in their lowest bits,
 * because these choose the slot in the index.
 */
export class WordTable {
  /** The words for the next call of `find` or `add`. The caller sets them before the call. */
  readonly sought: Int32Array<ArrayBuffer>;
  readonly #width: number;
  /** The words of all rows. They are signed, because a just-in-time compiler is slow with larger numbers. */
  #words: Int32Array<ArrayBuffer>;
  /**
   * Hash index by the first word of a row. An entry is the row number plus one, or 0 if empty. If a slot is taken, the
   * row is in one of the following slots. At least half of the index stays empty.
   */
  #index: Uint32Array<ArrayBuffer>;

  /** `width` is the number of words of a row. `rows` is the initial number of rows, at least 1. */
  constructor(width: number, rows: number) {
    this.#width = width;
    this.sought = new Int32Array(width);
    this.#words = new Int32Array(width * rows);
    this.#index = emptyIndex(rows);
  }

  /** Number of rows that fit without growing. */
  get room(): number {
    return this.#words.length / this.#width;
  }

  /** Returns the row whose words equal `sought`, or `noRow`. */
  find(): number {
    return (this.#index[this.#indexOfSought()] ?? 0) - 1;
  }

  /** Stores the words of `sought` in a free row below `room`. No other row may have these words. */
  add(row: number): void {
    this.#index[this.#indexOfSought()] = row + 1;
    this.#words.set(this.sought, row * this.#width);
  }

  /** Removes a row from the index, and moves later entries up that were displaced by a taken slot. */
  remove(row: number): void {
    const mask = this.#index.length - 1;
    let gap = this.#homeOf(row);
    while (this.#index[gap] !== row + 1) gap = (gap + 1) & mask;
    for (let index = (gap + 1) & mask; ; index = (index + 1) & mask) {
      const other = this.#index[index] ?? 0;
      if (other === 0) break;
      const steps = (index - this.#homeOf(other - 1)) & mask;
      if (steps < ((index - gap) & mask)) continue;
      this.#index[gap] = other;
      gap = index;
    }
    this.#index[gap] = 0;
  }

  /** Returns the word at index `nth` of a row. */
  wordAt(row: number, nth: number): number {
    return this.#words[row * this.#width + nth] ?? 0;
  }

  /** Sets `sought` to the words of a row in another table of the same width. */
  seek(of: WordTable, row: number): void {
    for (let nth = 0; nth < this.#width; nth++) this.sought[nth] = of.wordAt(row, nth);
  }

  /** Grows the table to this number of rows, which must not be less than before. */
  makeRoomFor(rows: number): void {
    const words = new Int32Array(this.#width * rows);
    words.set(this.#words);
    this.#words = words;
    const before = this.#index;
    this.#index = emptyIndex(rows);
    const mask = this.#index.length - 1;
    for (const entry of before) {
      if (entry === 0) continue;
      let index = this.#homeOf(entry - 1);
      while (this.#index[index] !== 0) index = (index + 1) & mask;
      this.#index[index] = entry;
    }
  }

  /** Returns the index slot of the row with the sought words, or the empty slot for a new row. */
  #indexOfSought(): number {
    const mask = this.#index.length - 1;
    for (let index = (this.sought[0] ?? 0) & mask; ; index = (index + 1) & mask) {
      const entry = this.#index[index] ?? 0;
      if (entry === 0 || this.#isAt(entry - 1)) return index;
    }
  }

  #isAt(row: number): boolean {
    const first = row * this.#width;
    for (let nth = 0; nth < this.#width; nth++) if (this.#words[first + nth] !== this.sought[nth]) return false;
    return true;
  }

  #homeOf(row: number): number {
    return (this.#words[row * this.#width] ?? 0) & (this.#index.length - 1);
  }
}

function emptyIndex(rows: number): Uint32Array<ArrayBuffer> {
  return new Uint32Array(2 ** Math.ceil(Math.log2(2 * rows)));
}
