// Rows that are found by the 32-bit words that each of them has: what is looked for is nowhere else, and no object leads there.

/** In place of a row. */
export const noRow = -1;

/**
 * Words lie in typed arrays: a look-up touches two places in memory, however many rows there are, and leaves nothing for a
 * garbage collection to walk through. Whoever has rows says which are free. The first word of a row should differ from
 * row to row in its lower bits, the last ones most of all.
 */
export class WordTable {
  /** Words that are looked for, or added: each use is over before the next begins. */
  readonly sought: Int32Array<ArrayBuffer>;
  readonly #width: number;
  /** Signed ones, as larger numbers than those are slow for a just-in-time compiler. */
  #words: Int32Array<ArrayBuffer>;
  /** By the first word of a row, and from there on: the row, from 1 on; 0 where there is none. Half of it stays empty. */
  #index: Uint32Array<ArrayBuffer>;

  /** `width`: words of a row. `rows`: those that there is room for at first, at least 1. */
  constructor(width: number, rows: number) {
    this.#width = width;
    this.sought = new Int32Array(width);
    this.#words = new Int32Array(width * rows);
    this.#index = emptyIndex(rows);
  }

  /** Rows that there is room for. */
  get room(): number {
    return this.#words.length / this.#width;
  }

  /** The row of the words that are looked for. */
  find(): number {
    return (this.#index[this.#placeOfSought()] ?? 0) - 1;
  }

  /** Gives a row, which is free and which there is room for, the words that are looked for, which no other has. */
  add(row: number): void {
    this.#index[this.#placeOfSought()] = row + 1;
    this.#words.set(this.sought, row * this.#width);
  }

  /** A row that was added: it is free from now on. What stands behind it in the index, for the want of its place, moves up. */
  remove(row: number): void {
    const mask = this.#index.length - 1;
    let gap = this.#homeOf(row);
    while (this.#index[gap] !== row + 1) gap = (gap + 1) & mask;
    for (let place = (gap + 1) & mask; ; place = (place + 1) & mask) {
      const other = this.#index[place] ?? 0;
      if (other === 0) break;
      const steps = (place - this.#homeOf(other - 1)) & mask;
      if (steps < ((place - gap) & mask)) continue;
      this.#index[gap] = other;
      gap = place;
    }
    this.#index[gap] = 0;
  }

  /** Word `nth` of a row. */
  wordAt(row: number, nth: number): number {
    return this.#words[row * this.#width + nth] ?? 0;
  }

  /** Looks for the words that a row of another table of the same width has. */
  seek(of: WordTable, row: number): void {
    for (let nth = 0; nth < this.#width; nth++) this.sought[nth] = of.wordAt(row, nth);
  }

  /** For so many rows, which are no fewer than before. */
  makeRoomFor(rows: number): void {
    const words = new Int32Array(this.#width * rows);
    words.set(this.#words);
    this.#words = words;
    const before = this.#index;
    this.#index = emptyIndex(rows);
    const mask = this.#index.length - 1;
    for (const entry of before) {
      if (entry === 0) continue;
      let place = this.#homeOf(entry - 1);
      while (this.#index[place] !== 0) place = (place + 1) & mask;
      this.#index[place] = entry;
    }
  }

  /** Where in the index the words that are looked for are, or belong. */
  #placeOfSought(): number {
    const mask = this.#index.length - 1;
    for (let place = (this.sought[0] ?? 0) & mask; ; place = (place + 1) & mask) {
      const entry = this.#index[place] ?? 0;
      if (entry === 0 || this.#isAt(entry - 1)) return place;
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
