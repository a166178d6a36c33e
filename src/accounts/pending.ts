// What was begun and waits for its second half, at whichever process: each entry can be taken once, and only so many are kept.

import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { type KeyRing, type Keys, keyRing, mapKeys } from "../domain/key-ring.ts";
import type { PendingStore } from "../domain/people/pending.ts";
import { tokenDigest } from "../policy/credentials/opaque-token.ts";
import { seal, unseal } from "../policy/credentials/sealing.ts";

export interface PendingOptions {
  store: PendingStore;
  /** 32 bytes each. Each value is sealed under a key of its own, derived from this one and from what it is asked for by. */
  sealingKey: Keys;
  clock: Pick<Clock, "nowSeconds">;
}

export interface PendingKind {
  name: string;
  lifeSeconds: number;
  /** With more, or soon after, the oldest ones are forgotten: whoever floods it must not lock others out for long. */
  most: number;
}

/** Looking for what is too much takes as long as there are entries: so often it may be a few more. */
const trimsPerFill = 100;

/** Characters of the tag of a network, which stands before a dot. */
const tagLength = 8;

/** The tag of a network stays readable, for the store to count by. */
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
   * Returns a new random key for something that anybody at the network may begin. When there are too many entries, the
   * network with the most loses its oldest ones first.
   */
  newKey(network: string): string {
    const [key] = keyRing(this.#options.sealingKey);
    const tag = createHmac("sha256", key).update(`network ${network}`).digest("base64url").slice(0, tagLength);
    return `${tag}.${randomBytes(32).toString("base64url")}`;
  }

  /** In the place of an earlier one with the same key. Throws `service_unavailable`. */
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

  /** Undefined for what was never there, has ended or was taken. Throws `service_unavailable`. */
  async take(key: string): Promise<Value | undefined> {
    const { store, clock } = this.#options;
    const sealed = await store.take(this.#kind.name, digestOf(key), clock.nowSeconds());
    if (sealed === undefined) return undefined;
    try {
      return JSON.parse(unseal(sealed, this.#sealingKeyOf(key), this.#kind.name)) as Value;
    } catch {
      // Begun under a secret that is no longer accepted: it has to be begun again.
      return undefined;
    }
  }

  /** Leaves it there. Throws `service_unavailable`. */
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
