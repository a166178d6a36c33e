// A map of bounded size that drops the least recently used entry.

/** Stands for "no slot". */
const none = -1;
const fewSlots = 64;

/**
 * Entries form a linked list in their order of use, because moving an entry within a Map would hash its key three
 * times. The links are numbers in typed arrays, because the next garbage collection visits each object that was written
 * to.
 */
export class LruMap<Value> {
  readonly #capacity: number;
  readonly #slots = new Map<string, number>();
  /** Keys by slot. A free slot has only a link to the next free slot, in `#newer`. */
  #keys: string[] = [];
  #values: (Value | undefined)[] = [];
  #older = new Int32Array(fewSlots);
  #newer = new Int32Array(fewSlots);
  #oldest = none;
  #newest = none;
  #free = none;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#slots.size;
  }

  /** Returns the least recently used entry. */
  get oldest(): { readonly key: string; readonly value: Value } | undefined {
    if (this.#oldest === none) return undefined;
    return { key: this.#keys[this.#oldest] as string, value: this.#values[this.#oldest] as Value };
  }

  get(key: string): Value | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    if (slot !== this.#newest) {
      this.#unlink(slot);
      this.#append(slot);
    }
    return this.#values[slot];
  }

  set(key: string, value: Value): void {
    this.delete(key);
    if (this.#oldest !== none && this.#slots.size >= this.#capacity) this.delete(this.#keys[this.#oldest] as string);
    const slot = this.#freeSlot();
    this.#keys[slot] = key;
    this.#values[slot] = value;
    this.#slots.set(key, slot);
    this.#append(slot);
  }

  delete(key: string): void {
    const slot = this.#slots.get(key);
    if (slot === undefined) return;
    this.#slots.delete(key);
    this.#unlink(slot);
    this.#keys[slot] = "";
    this.#values[slot] = undefined;
    this.#newer[slot] = this.#free;
    this.#free = slot;
  }

  forgetWhere(isOver: (value: Value) => boolean): void {
    for (const [key, slot] of this.#slots) if (isOver(this.#values[slot] as Value)) this.delete(key);
  }

  replaceEach(by: (value: Value) => Value): void {
    for (const slot of this.#slots.values()) this.#values[slot] = by(this.#values[slot] as Value);
  }

  clear(): void {
    this.#slots.clear();
    this.#keys = [];
    this.#values = [];
    this.#oldest = none;
    this.#newest = none;
    this.#free = none;
  }

  #freeSlot(): number {
    if (this.#free !== none) {
      const slot = this.#free;
      this.#free = this.#newer[slot] as number;
      return slot;
    }
    const slot = this.#keys.length;
    if (slot === this.#older.length) {
      this.#older = twiceAsLong(this.#older);
      this.#newer = twiceAsLong(this.#newer);
    }
    return slot;
  }

  #append(slot: number): void {
    this.#older[slot] = this.#newest;
    this.#newer[slot] = none;
    if (this.#newest !== none) this.#newer[this.#newest] = slot;
    else this.#oldest = slot;
    this.#newest = slot;
  }

  #unlink(slot: number): void {
    const older = this.#older[slot] as number;
    const newer = this.#newer[slot] as number;
    if (older !== none) this.#newer[older] = newer;
    else this.#oldest = newer;
    if (newer !== none) this.#older[newer] = older;
    else this.#newest = older;
  }
}

function twiceAsLong(links: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(2 * links.length);
  longer.set(links);
  return longer;
}
