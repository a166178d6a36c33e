// Operations that begin in one request and end in a later one, which any process may handle. Each entry can be taken
// once, and the number of entries is limited.

import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { type KeyRing, type Keys, keyRing, mapKeys } from "../domain/key-ring.ts";
import type { PendingStore } from "../domain/people/pending.ts";
import { tokenDigest } from "../policy/credentials/opaque-token.ts";
import { seal, unseal } from "../policy/credentials/sealing.ts";

export interface PendingOptions {
  store: PendingStore;
  /**
   * The sealing keys, 32 bytes each. Each value is sealed under a key that is derived from a sealing key and the
   * entry's key.
   */
  sealingKey: Keys;
  clock: Pick<Clock, "nowSeconds">;
}

export interface PendingKind {
  name: string;
  lifeSeconds: number;
  /** Maximum number of entries. Beyond it the oldest entries are dropped: a flood must not lock others out for long. */
  most: number;
}

/**
 * The number of times that `trim` counts the entries while the store fills up. Counting takes time in proportion to the
 * entries, so the maximum may be exceeded a little between two counts.
 */
const trimsPerFill = 100;

/** The length of the network tag, a keyed hash of the client's network at the start of a key. A dot follows the tag. */
const tagLength = 8;

/**
 * Returns the digest of a key. If the key has a network tag, the tag precedes the digest, because the store counts
 * entries by tag.
 */
function digestOf(key: string): string {
  return key[tagLength] === "." ? `${key.slice(0, tagLength + 1)}${tokenDigest(key)}` : tokenDigest(key);
}

export class Pending<Value> {
  readonly #options: PendingOptions;
  readonly #kind: PendingKind;
  #puts = 0;

  constructor(options: PendingOptions, kind: PendingKind) {
    this.#options = options;
    this.#kind = kind;
  }

  /**
   * Returns a random key for an operation that anybody may begin. If there are too many entries, the network with the
   * most entries loses its oldest.
   */
  newKey(network: string): string {
    const [key] = keyRing(this.#options.sealingKey);
    const tag = createHmac("sha256", key).update(`network ${network}`).digest("base64url").slice(0, tagLength);
    return `${tag}.${randomBytes(32).toString("base64url")}`;
  }

  /**
   * Stores an entry, which replaces an earlier entry with the same key. Throws `service_unavailable` if the store
   * cannot be used.
   */
  async put(key: string, value: Value): Promise<void> {
    const { store, clock } = this.#options;
    const { name, lifeSeconds, most } = this.#kind;
    await store.put({
      kind: name,
      digest: digestOf(key),
      value: seal(JSON.stringify(value), this.#sealingKeyOf(key), name),
      expiresAt: clock.nowSeconds() + lifeSeconds,
    });
    this.#puts++;
    if (this.#puts % Math.max(1, Math.floor(most / trimsPerFill)) === 0) await store.trim(name, most);
  }

  /**
   * Removes an entry and returns its value; undefined if it never existed, has expired or was taken. Throws
   * `service_unavailable` if the store cannot be used.
   */
  async take(key: string): Promise<Value | undefined> {
    const { store, clock } = this.#options;
    const sealed = await store.take(this.#kind.name, digestOf(key), clock.nowSeconds());
    if (sealed === undefined) return undefined;
    try {
      return JSON.parse(unseal(sealed, this.#sealingKeyOf(key), this.#kind.name)) as Value;
    } catch {
      // The value was sealed under a secret that is no longer accepted, so the operation must begin again.
      return undefined;
    }
  }

  /**
   * Reports whether the entry exists, and leaves it in place. Throws `service_unavailable` if the store cannot be used.
   */
  has(key: string): Promise<boolean> {
    const { store, clock } = this.#options;
    return store.has(this.#kind.name, digestOf(key), clock.nowSeconds());
  }

  #sealingKeyOf(key: string): KeyRing {
    return mapKeys(this.#options.sealingKey, (sealingKey) =>
      createHmac("sha256", sealingKey).update(`${this.#kind.name} ${key}`).digest(),
    );
  }
}
