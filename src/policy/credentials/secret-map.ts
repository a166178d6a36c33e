// A map by secrets that keeps no secret, only digests of them, and is as quick with 100,000 of them as with ten.

/** SHA-256 in 32-bit words: signed ones, as larger numbers than those are slow for a just-in-time compiler. */
const digestWords = 8;
const smallest = 64;

/**
 * Its size is bounded: an entry that was asked for since it was last considered is spared, one that was not gives its place
 * to the next. Digests, and what of them is looked for, lie in typed arrays: a look-up touches three places in memory,
 * changes at most a byte, and leaves nothing for a garbage collection to walk through.
 *
 * SHA-256 costs a third of an HMAC. Without a pepper anybody can compute it of a guess, but of a key's 178 random bits
 * there is no guessing, and what a look-up may tell of a digest by its time brings nobody closer to the key.
 */
export class SecretMap<Value> {
  readonly #capacity: number;
  /** The digest that is looked for; each use is over before the next begins. */
  readonly #digest = new Uint8Array(4 * digestWords);
  readonly #words = new Int32Array(this.#digest.buffer);
  /** By slot: digests one after the other, values, and whether they were asked for. */
  #digests: Int32Array = new Int32Array(0);
  #values: Value[] = [];
  #asked: Uint8Array = new Uint8Array(0);
  /** By the first word of a digest, and from there on: the slot, from 1 on; 0 where there is none. Half of it stays empty. */
  #index: Uint32Array = new Uint32Array(0);
  /** The slot that is considered next. */
  #hand = 0;

  /** At least 1. */
  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#makeRoomFor(Math.min(capacity, smallest));
  }

  get size(): number {
    return this.#values.length;
  }

  get(secret: string): Value | undefined {
    this.#readDigest(secret);
    const slot = this.#index[this.#placeOf()] ?? 0;
    if (slot === 0) return undefined;
    if (this.#asked[slot - 1] === 0) this.#asked[slot - 1] = 1;
    return this.#values[slot - 1];
  }

  set(secret: string, value: Value): void {
    this.#readDigest(secret);
    const known = this.#index[this.#placeOf()] ?? 0;
    if (known !== 0) {
      this.#values[known - 1] = value;
      return;
    }
    const slot = this.#freeSlot();
    // What gave up its slot may have changed the place.
    this.#index[this.#placeOf()] = slot + 1;
    this.#digests.set(this.#words, slot * digestWords);
    this.#values[slot] = value;
    this.#asked[slot] = 0;
  }

  /** Takes as long as there are entries. */
  forgetWhere(isOver: (value: Value) => boolean): void {
    let kept = 0;
    for (let slot = 0; slot < this.#values.length; slot++) {
      const value = this.#values[slot] as Value;
      if (isOver(value)) continue;
      this.#values[kept] = value;
      this.#asked[kept] = this.#asked[slot] as number;
      this.#digests.copyWithin(kept * digestWords, slot * digestWords, (slot + 1) * digestWords);
      kept++;
    }
    this.#values.length = kept;
    this.#hand = 0;
    this.#makeRoomFor(Math.min(this.#capacity, Math.max(kept, smallest)));
  }

  replaceEach(by: (value: Value) => Value): void {
    this.#values = this.#values.map(by);
  }

  clear(): void {
    this.#values = [];
    this.#hand = 0;
    this.#makeRoomFor(Math.min(this.#capacity, smallest));
  }

  #readDigest(secret: string): void {
    Bun.SHA256.hash(secret, this.#digest);
  }

  /** Where in the index the digest that was read is, or belongs. */
  #placeOf(): number {
    const mask = this.#index.length - 1;
    for (let place = (this.#words[0] ?? 0) & mask; ; place = (place + 1) & mask) {
      const slot = this.#index[place] ?? 0;
      if (slot === 0 || this.#isAt(slot - 1)) return place;
    }
  }

  #isAt(slot: number): boolean {
    const first = slot * digestWords;
    for (let i = 0; i < digestWords; i++) if (this.#digests[first + i] !== this.#words[i]) return false;
    return true;
  }

  #freeSlot(): number {
    const { length } = this.#values;
    if (length < this.#capacity) {
      if (length === this.#asked.length) this.#makeRoomFor(Math.min(2 * length, this.#capacity));
      return length;
    }
    for (; this.#asked[this.#hand] === 1; this.#hand = (this.#hand + 1) % length) this.#asked[this.#hand] = 0;
    const slot = this.#hand;
    this.#hand = (slot + 1) % length;
    this.#forget(slot);
    return slot;
  }

  /** Takes a slot out of the index, and moves up what stands behind it for the want of its place. */
  #forget(slot: number): void {
    const mask = this.#index.length - 1;
    let gap = this.#homeOf(slot);
    while (this.#index[gap] !== slot + 1) gap = (gap + 1) & mask;
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

  #homeOf(slot: number): number {
    return (this.#digests[slot * digestWords] ?? 0) & (this.#index.length - 1);
  }

  /** For so many entries; those that there are stay. */
  #makeRoomFor(count: number): void {
    const known = this.#values.length;
    const digests = new Int32Array(count * digestWords);
    const asked = new Uint8Array(count);
    digests.set(this.#digests.subarray(0, known * digestWords));
    asked.set(this.#asked.subarray(0, known));
    this.#digests = digests;
    this.#asked = asked;
    this.#index = new Uint32Array(2 ** Math.ceil(Math.log2(2 * count)));
    for (let slot = 0; slot < known; slot++) {
      let place = this.#homeOf(slot);
      while (this.#index[place] !== 0) place = (place + 1) & (this.#index.length - 1);
      this.#index[place] = slot + 1;
    }
  }
}
