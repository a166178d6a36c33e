// The requests that have begun and not settled, oldest first: a list whose links are the entries' own.

export interface OpenEntry<Entry> {
  isOpen: boolean;
  older: Entry | undefined;
  newer: Entry | undefined;
}

/**
 * The open requests in their order. A set would do the same; but each request comes and goes, and a set makes room for
 * that anew and anew.
 */
export class OpenEntries<Entry extends OpenEntry<Entry>> {
  #oldest: Entry | undefined;
  #newest: Entry | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get newest(): Entry | undefined {
    return this.#newest;
  }

  /** One that is in none yet. */
  add(entry: Entry): void {
    const newest = this.#newest;
    entry.isOpen = true;
    entry.older = newest;
    if (newest === undefined) this.#oldest = entry;
    else newest.newer = entry;
    this.#newest = entry;
    this.#size++;
  }

  /** One that is in this. */
  delete(entry: Entry): void {
    const { older, newer } = entry;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    entry.isOpen = false;
    entry.older = undefined;
    entry.newer = undefined;
    this.#size--;
  }

  /** Visits the entries from the oldest on. None of them may be deleted meanwhile. */
  *[Symbol.iterator](): Generator<Entry> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.newer) yield entry;
  }
}
