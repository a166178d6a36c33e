// Bounds what costs work and counts against no other limit: access tokens, changes of keys, apps, members and names, conversations, and lists of tools.
import { GatewayError } from "../base/errors.ts";
import type { LimitStore } from "../domain/limits/limits.ts";
import { keyOf, type Principal } from "../domain/principal.ts";

const perMinute = { token: 120, change: 300, conversation: 1_200, tools: 1_200 } as const;
/** Clients put in no more than that: at the pace of changes alone they would fill a disk within the hour. */
const bytesPerMinute = 16 * 1024 * 1024;
const words = {
  token: "access tokens",
  change: "changes",
  conversation: "changes of conversations, with 16 MiB together,",
  tools: "questions to servers of tools beside calls",
} as const;
const windowSeconds = 60;

export class Throttle {
  readonly #limits: LimitStore;

  constructor(limits: LimitStore) {
    this.#limits = limits;
  }

  /**
   * Throws `rate_limit_exceeded`. Counts by key, its successors included: no key uses up what another one has. `bytes`: of
   * what is kept; a single request may have more than there are in a minute.
   */
  async require(what: keyof typeof perMinute, principal: Principal, bytes = 0): Promise<void> {
    const limit = perMinute[what];
    const [id, size] = [`${what}:${keyOf(principal).limitId}`, Math.min(bytes, bytesPerMinute)];
    const rules = {
      requests: [{ id, owner: "key", limit, windowSeconds }] as const,
      tokens: size === 0 ? [] : ([{ id: `${id}:bytes`, owner: "key", limit: bytesPerMinute, windowSeconds }] as const),
      quotas: [],
    };
    const admission = await this.#limits.admit(rules, { tokens: size, nanoUsd: 0, minTokens: size, minNanoUsd: 0 });
    if ("lease" in admission) return admission.lease.settle(size, 0);
    const { retryAfterSeconds = 1 } = admission.refusal;
    throw new GatewayError(
      "rate_limit_exceeded",
      `At most ${limit} ${words[what]} per minute. Retry in ${Math.ceil(retryAfterSeconds)} s.`,
      { retryAfterSeconds },
    );
  }
}
