// A map by name of what comes and goes all the time: its table stays, where a Map's is replaced as its entries change.

/** Chains; a power of two. With more entries than that they only become longer. */
const chains = 4_096;

/** An entry has its name and leads to the next one of its chain: it is in one map at most. */
export interface Chained<Value> {
  readonly name: string;
  next: Value | undefined;
}

/**
 * Tables that a Map has left lead to the ones that followed: once a collection takes one of them for old, whatever was in
 * later ones outlives all minor collections.
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

  /** One whose name no other entry has. */
  add(entry: Value): void {
    const chain = chainOf(entry.name);
    entry.next = this.#first[chain];
    this.#first[chain] = entry;
    this.#size++;
  }

  /** One that is in it. */
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

/** Units at the end of a name that tell its chain: ids differ there. */
const hashedUnits = 16;

/** FNV-1a, its upper bits put to use. */
function chainOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = Math.max(0, name.length - hashedUnits); i < name.length; i++)
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 16)) & (chains - 1);
}
