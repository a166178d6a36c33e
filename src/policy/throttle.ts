// Limits the rate of work that request limits do not count: access tokens, changes of keys, apps, members and names,
// conversations, lists of tools, token counts, and requests with an idempotency key.
import { GatewayError } from "../base/errors.ts";
import type { Admission, LimitStore } from "../domain/limits/limits.ts";
import { keyOf, type Principal } from "../domain/principal.ts";

const perMinute = {
  token: 120,
  change: 300,
  conversation: 1_200,
  tools: 1_200,
  count: 300,
  repeatable: 1_200,
} as const;
/**
 * The limit of all keys of an account, as a multiple of one key's limit: a key creates others, each with its own
 * limit. Absent if accounts have no limit.
 */
const accountTimes: Readonly<Partial<Record<keyof typeof perMinute, number>>> = {
  token: 50,
  change: 10,
  conversation: 4,
  count: 4,
  repeatable: 4,
};
/**
 * Maximum bytes that a client may store per minute. A limit on the number of changes alone would let clients fill a
 * disk within the hour.
 */
const bytesPerMinute = 16 * 1024 * 1024;
const words = {
  token: "access tokens",
  change: "changes",
  conversation: "changes of conversations and labels of chats, with 16 MiB together,",
  tools: "questions to MCP servers beside calls",
  count: "counts of tokens",
  repeatable: "requests with an Idempotency-Key",
} as const;
const windowSeconds = 60;

type Throttled = keyof typeof perMinute;

export class Throttle {
  readonly #limits: LimitStore;

  constructor(limits: LimitStore) {
    this.#limits = limits;
  }

  /**
   * Counts the work by account, and by key together with the key's successors. Throws `rate_limit_exceeded` if a limit
   * is used up. `bytes` is the size of what is stored; a single request may exceed the bytes of a minute.
   */
  async require(what: Throttled, principal: Principal, bytes = 0): Promise<void> {
    const admission = await this.#take(what, principal, bytes);
    if ("lease" in admission) return;
    const [limit, times] = [perMinute[what], accountTimes[what]];
    const { retryAfterSeconds = 1 } = admission.refusal;
    const ofAccount = times === undefined ? "" : ` by a key, and ${limit * times} by all keys of its account`;
    throw new GatewayError(
      "rate_limit_exceeded",
      `At most ${limit} ${words[what]} per minute${ofAccount}. Retry in ${Math.ceil(retryAfterSeconds)} s.`,
      { retryAfterSeconds },
    );
  }

  /** Reports whether the limit allows the work, and counts it: for work that may be skipped. */
  async allows(what: Throttled, principal: Principal): Promise<boolean> {
    return "lease" in (await this.#take(what, principal, 0));
  }

  async #take(what: Throttled, principal: Principal, bytes: number): Promise<Admission> {
    const [limit, times] = [perMinute[what], accountTimes[what]];
    const size = Math.min(bytes, bytesPerMinute);
    const owners: { id: string; owner: "key" | "account"; times: number }[] = [
      { id: `${what}:${keyOf(principal).limitId}`, owner: "key", times: 1 },
    ];
    if (times !== undefined) owners.push({ id: `${what}:${principal.account.id}`, owner: "account", times });
    const rulesOf = (most: number, suffix = "") =>
      owners.map(({ id, owner, times }) => ({ id: id + suffix, owner, limit: most * times, windowSeconds }));
    const rules = { requests: rulesOf(limit), tokens: size === 0 ? [] : rulesOf(bytesPerMinute, ":bytes"), quotas: [] };
    const admission = await this.#limits.admit(rules, { tokens: size, nanoUsd: 0, minTokens: size, minNanoUsd: 0 });
    if ("lease" in admission) admission.lease.settle(size, 0);
    return admission;
  }
}
