// Open requests, oldest first: an intrusive linked list.

export interface OpenEntry<Entry> {
  isOpen: boolean;
  older: Entry | undefined;
  newer: Entry | undefined;
}

/** The open requests in order: a linked list, because a set would allocate memory for each request. */
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

  /** Adds an entry that is in no list yet. */
  add(entry: Entry): void {
    const newest = this.#newest;
    entry.isOpen = true;
    entry.older = newest;
    if (newest === undefined) this.#oldest = entry;
    else newest.newer = entry;
    this.#newest = entry;
    this.#size++;
  }

  /** Deletes an entry that is in this list. */
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

  /** Iterates over the entries, oldest first. No entry may be deleted during the iteration. */
  *[Symbol.iterator](): Generator<Entry> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.newer) yield entry;
  }
}
