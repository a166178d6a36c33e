// A map of bounded size that gives up what was not asked for the longest.

interface Entry<Value> {
  readonly key: string;
  value: Value;
  older: Entry<Value> | undefined;
  newer: Entry<Value> | undefined;
}

/** Use is told by links between the entries: to move an entry within a Map would hash its key three times. */
export class LruMap<Value> {
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<Value>>();
  #oldest: Entry<Value> | undefined;
  #newest: Entry<Value> | undefined;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** What was not asked for the longest. */
  get oldest(): { readonly key: string; readonly value: Value } | undefined {
    return this.#oldest;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry !== this.#newest) {
      this.#unlink(entry);
      this.#append(entry);
    }
    return entry.value;
  }

  set(key: string, value: Value): void {
    this.delete(key);
    const oldest = this.#oldest;
    if (oldest && this.#entries.size >= this.#capacity) this.delete(oldest.key);
    const entry = { key, value, older: undefined, newer: undefined };
    this.#entries.set(key, entry);
    this.#append(entry);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#unlink(entry);
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = undefined;
    this.#newest = undefined;
  }

  #append(entry: Entry<Value>): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
  }

  #unlink({ older, newer }: Entry<Value>): void {
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
  }
}
