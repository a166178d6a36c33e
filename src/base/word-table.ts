// Finds rows by the 32-bit words that each of them has. The words are stored here only, without an object for each row.

/** Returned instead of a row. */
export const noRow = -1;

/**
 * Words are stored in typed arrays: a look-up touches two places in memory, however many rows there are, and a garbage
 * collection has nothing to walk through. The caller says which rows are free. The first word should differ between
 * rows in its lower bits, the last words most of all.
 */
export class WordTable {
  /** The words to find or add. Each use ends before the next begins. */
  readonly sought: Int32Array<ArrayBuffer>;
  readonly #width: number;
  /** Signed, since a just-in-time compiler is slow with larger numbers. */
  #words: Int32Array<ArrayBuffer>;
  /** Hash index by the first word of a row: the row plus one, or 0 if empty. At least half of it stays empty. */
  #index: Uint32Array<ArrayBuffer>;

  /** `width` is the number of words of a row, `rows` the initial room, at least 1. */
  constructor(width: number, rows: number) {
    this.#width = width;
    this.sought = new Int32Array(width);
    this.#words = new Int32Array(width * rows);
    this.#index = emptyIndex(rows);
  }

  /** The number of rows that there is room for. */
  get room(): number {
    return this.#words.length / this.#width;
  }

  /** Returns the row that has the sought words. */
  find(): number {
    return (this.#index[this.#indexOfSought()] ?? 0) - 1;
  }

  /** Gives a free row, for which there is room, the sought words. No other row may have them. */
  add(row: number): void {
    this.#index[this.#indexOfSought()] = row + 1;
    this.#words.set(this.sought, row * this.#width);
  }

  /** Frees a row that was added. Rows that follow it in the index because their place was taken move up. */
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

  /** Word `nth` of a row. */
  wordAt(row: number, nth: number): number {
    return this.#words[row * this.#width + nth] ?? 0;
  }

  /** Sets the sought words to those of a row of another table of the same width. */
  seek(of: WordTable, row: number): void {
    for (let nth = 0; nth < this.#width; nth++) this.sought[nth] = of.wordAt(row, nth);
  }

  /** Makes room for this many rows, which must not be fewer than before. */
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

  /** The place in the index where the sought words are, or belong. */
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
