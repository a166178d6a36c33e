// A map by secrets that keeps no secret, only digests of them, and is as quick with 100,000 of them as with ten.
import { WordTable } from "../../base/word-table.ts";

/** SHA-256 in 32-bit words. */
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
  #digests: WordTable;
  /** The bytes of the digest that is looked for. */
  #sought: Uint8Array;
  /** By slot, which is a row of the digests: values, and whether they were asked for. */
  #values: Value[] = [];
  #asked: Uint8Array;
  /** The slot that is considered next. */
  #hand = 0;

  /** At least 1. */
  constructor(capacity: number) {
    this.#capacity = capacity;
    const room = this.#roomFor(0);
    this.#digests = new WordTable(digestWords, room);
    this.#sought = new Uint8Array(this.#digests.sought.buffer);
    this.#asked = new Uint8Array(room);
  }

  get size(): number {
    return this.#values.length;
  }

  get(secret: string): Value | undefined {
    Bun.SHA256.hash(secret, this.#sought);
    const slot = this.#digests.find();
    if (slot < 0) return undefined;
    if (this.#asked[slot] === 0) this.#asked[slot] = 1;
    return this.#values[slot];
  }

  set(secret: string, value: Value): void {
    Bun.SHA256.hash(secret, this.#sought);
    const known = this.#digests.find();
    if (known >= 0) {
      this.#values[known] = value;
      return;
    }
    this.#add(this.#freeSlot(), value, 0);
  }

  /** Takes as long as there are entries. */
  forgetWhere(isOver: (value: Value) => boolean): void {
    const [digests, values, asked] = [this.#digests, this.#values, this.#asked];
    this.#empty(values.length);
    for (const [slot, value] of values.entries()) {
      if (isOver(value)) continue;
      this.#digests.seek(digests, slot);
      this.#add(this.#freeSlot(), value, asked[slot] ?? 0);
    }
  }

  replaceEach(by: (value: Value) => Value): void {
    this.#values = this.#values.map(by);
  }

  clear(): void {
    this.#empty(0);
  }

  /** With the digest that is looked for. */
  #add(slot: number, value: Value, asked: number): void {
    this.#digests.add(slot);
    this.#values[slot] = value;
    this.#asked[slot] = asked;
  }

  #empty(expected: number): void {
    const room = this.#roomFor(expected);
    this.#values = [];
    this.#hand = 0;
    this.#digests = new WordTable(digestWords, room);
    this.#sought = new Uint8Array(this.#digests.sought.buffer);
    this.#asked = new Uint8Array(room);
  }

  #roomFor(expected: number): number {
    return Math.min(this.#capacity, Math.max(expected, smallest));
  }

  #freeSlot(): number {
    const { length } = this.#values;
    if (length < this.#capacity) {
      if (length === this.#asked.length) this.#grow(Math.min(2 * length, this.#capacity));
      return length;
    }
    for (; this.#asked[this.#hand] === 1; this.#hand = (this.#hand + 1) % length) this.#asked[this.#hand] = 0;
    const slot = this.#hand;
    this.#hand = (slot + 1) % length;
    this.#digests.remove(slot);
    return slot;
  }

  #grow(room: number): void {
    this.#digests.makeRoomFor(room);
    const asked = new Uint8Array(room);
    asked.set(this.#asked);
    this.#asked = asked;
  }
}
