// A map by secrets that stores only digests of the secrets. It is as fast with 100,000 entries as with ten.
import { WordTable } from "../../base/word-table.ts";

/** 32-bit words of a SHA-256 digest. */
const digestWords = 8;
const smallest = 64;

/**
 * A full map evicts entries by the CLOCK algorithm: an entry that was used since the hand last passed stays. Digests
 * and use marks are in typed arrays: a look-up touches three places in memory, changes at most a byte, and leaves
 * nothing for a garbage collection to visit. SHA-256 costs a third of an HMAC. Anybody can compute the digest of a
 * guess, but the 178 random bits of a key cannot be guessed. The time of a look-up therefore reveals nothing useful.
 */
export class SecretMap<Value> {
  readonly #capacity: number;
  #digests: WordTable;
  /** Bytes of the digest to find. */
  #sought: Uint8Array;
  /** Values by slot (a row of the digests), and whether they were used. */
  #values: Value[] = [];
  #asked: Uint8Array;
  /** The slot that is considered next for eviction. */
  #hand = 0;

  /** `capacity` must be at least 1. */
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

  /** Takes time proportional to the number of entries. */
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

  /** Stores a value under the sought digest. */
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
