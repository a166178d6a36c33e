// An unordered set for objects that are added and removed with every request.

/** An object that can be in one set at a time. */
export interface IndexedItem {
  /** Position in the set, initially `noIndex`. Only the set writes it. */
  setIndex: number;
}

export const noIndex = -1;

/**
 * A Set moves to new tables as its members change, and each old table links to the next. If the garbage collector
 * treats an old table as long-lived, every member of later tables stays in memory until the next full collection. This
 * set keeps no link to a removed member.
 */
export class IndexedSet<Item extends IndexedItem> implements Iterable<Item> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Adds an item that is in no set. */
  add(item: Item): void {
    item.setIndex = this.#items.push(item) - 1;
  }

  /** Deletes an item. The last item moves to its position. Does nothing if the item is in no set. */
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
   * Yields the items, which may be added or deleted during the iteration. An item that stays in the set is yielded at
   * least once. Only if other items are deleted meanwhile may an item be yielded twice, or a new item at all.
   */
  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (let i = this.#items.length - 1; i >= 0; i--) {
      const item = this.#items[i];
      if (item !== undefined) yield item;
    }
  }
}
