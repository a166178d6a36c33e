// What is there at the moment, in no order: for what comes and goes with every request.

/** An object that can be in a bag, in one at a time. */
export interface IndexedItem {
  /** Its place in its bag, `noIndex` at first. Only the bag writes it. */
  setIndex: number;
}

export const noIndex = -1;

/**
 * A set moves to new tables as its members come and go, and each old table leads to the next: once the collector has come
 * to regard one of them as old, every member of those behind it stays, with all that hangs on it, until the next full
 * collection. A bag leads to nothing that has left it.
 */
export class IndexedSet<Item extends IndexedItem> implements Iterable<Item> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** One that is in none. */
  add(item: Item): void {
    item.setIndex = this.#items.push(item) - 1;
  }

  /** Does nothing where it is in none. The last one takes its place. */
  delete(item: Item): void {
    const { setIndex } = item;
    if (setIndex === noIndex) return;
    item.setIndex = noIndex;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    last.setIndex = setIndex;
    this.#items[setIndex] = last;
  }

  /**
   * Meanwhile any may come or go: those that stay are given at least once; again, or where they came meanwhile, only if
   * others were deleted.
   */
  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (let i = this.#items.length - 1; i >= 0; i--) {
      const item = this.#items[i];
      if (item !== undefined) yield item;
    }
  }
}
