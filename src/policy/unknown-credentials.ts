// Bounds what made-up keys and session tokens cost: each of them is a look into the database that finds nothing.
import type { AddressThrottle } from "./address-throttle.ts";
import { LruMap } from "./lru-map.ts";

/** Digests of credentials that were found here; about 5 MB. */
const mostKept = 50_000;

export class UnknownCredentials {
  readonly #throttle: Pick<AddressThrottle, "take" | "peek">;
  readonly #found = new LruMap<true>(mostKept);

  constructor(throttle: Pick<AddressThrottle, "take" | "peek">) {
    this.#throttle = throttle;
  }

  /**
   * Before the store is asked for a credential. Throws `rate_limit_exceeded` where the address presented too many that are
   * nobody's, unless this one was found before: whoever sits behind the same address as somebody who tries keys is not
   * locked out.
   */
  requireFew(digest: string, address: string): void {
    const refusal = this.#throttle.peek("unknown", address);
    if (refusal && this.#found.get(digest) === undefined) throw refusal;
  }

  found(digest: string): void {
    if (this.#found.get(digest) === undefined) this.#found.set(digest, true);
  }

  notFound(address: string): void {
    this.#throttle.take("unknown", address);
  }
}
