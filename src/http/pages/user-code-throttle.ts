// Bounds how many wrong codes may be tried (RFC 8628, 5.1): a code is short, as a person types it.
import { GatewayError } from "../../domain/errors.ts";
import type { Lease, LimitStore, RateLimit } from "../../domain/limits.ts";

const limit = 10;
const windowSeconds = 600;

export class UserCodeThrottle {
  readonly #limits: LimitStore;

  constructor(limits: LimitStore) {
    this.#limits = limits;
  }

  /**
   * Counts a try before its code is looked for, so that no number of tries at once goes further. Throws
   * `rate_limit_exceeded`. One that turns out to be right is given back.
   */
  async begin(sessionId: string, clientAddress: string): Promise<{ end(outcome: "right" | "wrong"): void }> {
    const tokens = [ruleFor(`session:${sessionId}`), ruleFor(`address:${clientAddress}`)];
    const lease = await this.#take(tokens);
    return { end: (outcome) => lease.settle(outcome === "right" ? 0 : 1, 0) };
  }

  async #take(tokens: readonly RateLimit[]): Promise<Lease> {
    const one = { tokens: 1, nanoUsd: 0, minTokens: 1, minNanoUsd: 0 };
    const admission = await this.#limits.admit({ requests: [], tokens, quotas: [] }, one);
    if ("lease" in admission) return admission.lease;
    const { retryAfterSeconds = windowSeconds / limit } = admission.refusal;
    throw new GatewayError(
      "rate_limit_exceeded",
      `At most ${limit} wrong codes in ${windowSeconds / 60} minutes. Try again in ${Math.ceil(retryAfterSeconds)} s.`,
      { retryAfterSeconds },
    );
  }
}

function ruleFor(whose: string): RateLimit {
  return { id: `user-code:${whose}`, owner: "key", limit, windowSeconds };
}
