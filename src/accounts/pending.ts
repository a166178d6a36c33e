// What was begun and waits for its second half, at whichever process: each entry can be taken once, and only so many are kept.
import { createHmac } from "node:crypto";
import type { Clock } from "../domain/clock.ts";
import type { PendingStore } from "../domain/pending.ts";
import { tokenDigest } from "../policy/opaque-token.ts";
import { seal, unseal } from "../policy/sealing.ts";

export interface PendingOptions {
  store: PendingStore;
  /** 32 bytes. Each value is sealed under a key of its own, derived from this one and from what it is asked for by. */
  sealingKey: Uint8Array;
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

export class Pending<Value> {
  readonly #options: PendingOptions;
  readonly #kind: PendingKind;
  #puts = 0;

  constructor(options: PendingOptions, kind: PendingKind) {
    this.#options = options;
    this.#kind = kind;
  }

  /** In the place of an earlier one with the same key. Throws `service_unavailable`. */
  async put(key: string, value: Value): Promise<void> {
    const { store, clock } = this.#options;
    const { name, lifeSeconds, most } = this.#kind;
    await store.put({
      kind: name,
      digest: tokenDigest(key),
      value: seal(JSON.stringify(value), this.#sealingKeyOf(key), name),
      expiresAt: clock.nowSeconds() + lifeSeconds,
    });
    this.#puts++;
    if (this.#puts % Math.max(1, Math.floor(most / trimsPerFill)) === 0) await store.trim(name, most);
  }

  /** Undefined for what was never there, has ended or was taken. Throws `service_unavailable`. */
  async take(key: string): Promise<Value | undefined> {
    const { store, clock } = this.#options;
    const sealed = await store.take(this.#kind.name, tokenDigest(key), clock.nowSeconds());
    return sealed === undefined
      ? undefined
      : (JSON.parse(unseal(sealed, this.#sealingKeyOf(key), this.#kind.name)) as Value);
  }

  /** Leaves it there. Throws `service_unavailable`. */
  has(key: string): Promise<boolean> {
    const { store, clock } = this.#options;
    return store.has(this.#kind.name, tokenDigest(key), clock.nowSeconds());
  }

  #sealingKeyOf(key: string): Uint8Array {
    return createHmac("sha256", this.#options.sealingKey).update(`${this.#kind.name} ${key}`).digest();
  }
}
