// Bounds what one address may begin, where nobody is signed in yet.
import { GatewayError } from "../domain/errors.ts";
import { formatRange, parseRange } from "../domain/ip-range.ts";
import type { LimitStore } from "../domain/limits.ts";

export interface AddressThrottleOptions {
  limits: Pick<LimitStore, "admit">;
  /** What counts together, such as `passkey`. */
  name: string;
  perMinute: number;
}

const windowSeconds = 60;
const nothing = { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 };

export class AddressThrottle {
  readonly #options: AddressThrottleOptions;

  constructor(options: AddressThrottleOptions) {
    this.#options = options;
  }

  /** Throws `rate_limit_exceeded`. */
  async require(clientAddress: string): Promise<void> {
    const { limits, name, perMinute } = this.#options;
    const id = `${name}:${networkOf(clientAddress)}`;
    const rule = { id, owner: "key", limit: perMinute, windowSeconds } as const;
    const admission = await limits.admit({ requests: [rule], tokens: [], quotas: [] }, nothing);
    if ("lease" in admission) return admission.lease.settle(0, 0);
    const { retryAfterSeconds = 1 } = admission.refusal;
    throw new GatewayError(
      "rate_limit_exceeded",
      `Too many tries from your address. Wait ${Math.ceil(retryAfterSeconds)} s and try again.`,
      { retryAfterSeconds },
    );
  }
}

/** Of IPv6 the first 64 bits: one line or machine has all addresses behind them (RFC 6177). */
function networkOf(address: string): string {
  const range = address.includes(":") ? parseRange(`${address}/64`) : undefined;
  return range ? formatRange(range) : address;
}
