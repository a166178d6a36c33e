// Limits the cost of made-up keys and session tokens, each of which needs a database look-up without a result.
import type { AddressThrottle } from "../address-throttle.ts";
import { Turns } from "../turns.ts";
import { SecretMap } from "./secret-map.ts";

/** Maximum remembered credentials that were found, which take about 4 MB. */
const maxKept = 50_000;
/**
 * Maximum waiting look-ups for addresses that presented too many unknown credentials. These look-ups run one at a
 * time for all such addresses.
 */
const maxWaiting = 100;

export class UnknownCredentials {
  readonly #throttle: Pick<AddressThrottle, "take" | "peek">;
  readonly #found = new SecretMap<true>(maxKept);
  readonly #turns = new Turns(1, maxWaiting);

  constructor(throttle: Pick<AddressThrottle, "take" | "peek">) {
    this.#throttle = throttle;
  }

  /**
   * Returns the stored data of a credential. If the address has presented too many unknown credentials, rejects with
   * `rate_limit_exceeded` for a further unknown one. Other clients may share the address, such as that of a proxy, and
   * are not locked out. Credentials that were found before are looked up as usual; all others one at a time, for
   * example after a restart.
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
