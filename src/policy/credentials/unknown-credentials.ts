// Bounds what made-up keys and session tokens cost: each of them is a look into the database that finds nothing.
import type { AddressThrottle } from "../address-throttle.ts";
import { Turns } from "../turns.ts";
import { SecretMap } from "./secret-map.ts";

/** Credentials that were found here; about 4 MB. */
const maxKept = 50_000;
/** Looks for addresses that presented too many: one at a time, of all of them together. */
const maxWaiting = 100;

export class UnknownCredentials {
  readonly #throttle: Pick<AddressThrottle, "take" | "peek">;
  readonly #found = new SecretMap<true>(maxKept);
  readonly #turns = new Turns(1, maxWaiting);

  constructor(throttle: Pick<AddressThrottle, "take" | "peek">) {
    this.#throttle = throttle;
  }

  /**
   * What the store has of a credential. Rejects with `rate_limit_exceeded` for one that is nobody's where the address
   * presented too many of those. Whoever sits behind the same address is not locked out, which may be all the world where
   * a proxy is not trusted: what was found before is looked up as ever, and the rest, such as all of them after a restart,
   * one after the other.
   */
  async find<Found>(
    digest: string,
    address: string,
    read: () => Promise<Found | undefined> | Found,
  ): Promise<Found | undefined> {
    const refusal = this.#throttle.peek("unknown", address);
    const isHeld = refusal !== undefined && this.#found.get(digest) === undefined;
    const turn = isHeld ? this.#turns.run(async () => read()) : read();
    const found = turn === undefined ? undefined : await turn;
    if (found !== undefined) this.found(digest);
    else if (isHeld) throw refusal;
    else this.#throttle.take("unknown", address);
    return found;
  }

  found(digest: string): void {
    if (this.#found.get(digest) === undefined) this.#found.set(digest, true);
  }
}
