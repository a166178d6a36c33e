// A hash map by name with a fixed table, for entries that change all the time. A Map replaces its table as entries
// change.

/** Number of chains, a power of two. With more entries the chains become longer. */
const chains = 4_096;

/** An entry holds its name and the next entry of its chain, so it can be in one map only. */
export interface Chained<Value> {
  readonly name: string;
  next: Value | undefined;
}

/**
 * A Map replaces its table as entries change, and each old table links to the next. If the garbage collector treats an
 * old table as long-lived, all entries of later tables survive minor collections. This map never replaces its table.
 */
export class ChainedMap<Value extends Chained<Value>> {
  readonly #first: (Value | undefined)[] = new Array(chains).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(name: string): Value | undefined {
    let entry = this.#first[chainOf(name)];
    while (entry && entry.name !== name) entry = entry.next;
    return entry;
  }

  /** Adds an entry whose name is not in the map. */
  add(entry: Value): void {
    const chain = chainOf(entry.name);
    entry.next = this.#first[chain];
    this.#first[chain] = entry;
    this.#size++;
  }

  /** Removes an entry, which must be in the map. */
  delete(entry: Value): void {
    const chain = chainOf(entry.name);
    const first = this.#first[chain];
    if (first === entry) {
      this.#first[chain] = entry.next;
    } else {
      let before = first;
      while (before && before.next !== entry) before = before.next;
      if (before) before.next = entry.next;
    }
    entry.next = undefined;
    this.#size--;
  }
}

/** Number of characters at the end of a name that are hashed, because ids differ there. */
const hashedUnits = 16;

/** Computes an FNV-1a hash, folds in its upper bits, and returns the index of the chain. */
function chainOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = Math.max(0, name.length - hashedUnits); i < name.length; i++)
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 16)) & (chains - 1);
}
