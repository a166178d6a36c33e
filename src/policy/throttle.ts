// Bounds what costs a row in the database and counts against no other limit: access tokens, and changes of keys, apps, members and names.
import { GatewayError } from "../base/errors.ts";
import type { LimitStore } from "../domain/limits/limits.ts";
import { keyOf, type Principal } from "../domain/principal.ts";

const perMinute = { token: 120, change: 300 } as const;
const words = { token: "access tokens", change: "changes" } as const;
const windowSeconds = 60;
const nothing = { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 };

export class Throttle {
  readonly #limits: LimitStore;

  constructor(limits: LimitStore) {
    this.#limits = limits;
  }

  /** Throws `rate_limit_exceeded`. Counts by key, its successors included: no key uses up what another one has. */
  async require(what: keyof typeof perMinute, principal: Principal): Promise<void> {
    const limit = perMinute[what];
    const rule = { id: `${what}:${keyOf(principal).limitId}`, owner: "key", limit, windowSeconds } as const;
    const admission = await this.#limits.admit({ requests: [rule], tokens: [], quotas: [] }, nothing);
    if ("lease" in admission) return admission.lease.settle(0, 0);
    const { retryAfterSeconds = 1 } = admission.refusal;
    throw new GatewayError(
      "rate_limit_exceeded",
      `At most ${limit} ${words[what]} per minute. Retry in ${Math.ceil(retryAfterSeconds)} s.`,
      { retryAfterSeconds },
    );
  }
}
