// Limits the requests of OAuth clients: by address before anything is read, by client once it is known, and failures
// separately.

import { GatewayError } from "../../base/errors.ts";
import type { LimitStore, RateLimit } from "../../domain/limits/limits.ts";
import type { PublishedApp } from "../../domain/people/app.ts";
import { clientNetwork } from "../../policy/client-network.ts";

/** Maximum requests per minute. */
const perMinute = {
  /** The limit of all requests from one address, which may be a server with many users. */
  address: 600,
  failure: 30,
  /**
   * The limit of a client with a secret. A public client is limited at each address, because anybody could use up the
   * limit of its other users.
   */
  confidential: 1_200,
  public: 120,
  deviceByAddress: 20,
  /** The limit of device codes for one client: each code is a database row that anybody can cause. */
  device: 600,
  /** The limit of clients that register themselves, which some programs do at each sign-in. */
  registrationByAddress: 30,
  registration: 300,
  /** The limit of client documents that must be fetched. */
  documentByAddress: 30,
  document: 300,
} as const;
const windowSeconds = 60;
const nothing = { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 };

export class ClientThrottle {
  readonly #limits: LimitStore;

  constructor(limits: LimitStore) {
    this.#limits = limits;
  }

  /** Counts a request of this address. Throws `rate_limit_exceeded`. */
  requireAddress(clientAddress: string): Promise<void> {
    return this.#take(rule("address", clientNetwork(clientAddress)));
  }

  /**
   * Throws `rate_limit_exceeded` after too many failures, which `failed` counts. `app` is undefined for an unknown
   * client.
   */
  async requireFewFailures(app: Pick<PublishedApp, "id"> | undefined, clientAddress: string): Promise<void> {
    const failures = failuresOf(app, clientAddress);
    const { requests: state } = await this.#limits.peek(only(failures));
    if (state && state.remaining < 1) throw tooMany(failures, state.resetMs / 1000 / failures.limit);
  }

  async failed(app: Pick<PublishedApp, "id"> | undefined, clientAddress: string): Promise<void> {
    await this.#limits.admit(only(failuresOf(app, clientAddress)), nothing);
  }

  requireClient({ type, id }: Pick<PublishedApp, "type" | "id">, clientAddress: string): Promise<void> {
    return this.#take(type === "public" ? rule(type, id, clientNetwork(clientAddress)) : rule(type, id));
  }

  async requireDevice({ id }: Pick<PublishedApp, "id">, clientAddress: string): Promise<void> {
    await this.#take(rule("deviceByAddress", clientNetwork(clientAddress)));
    await this.#take(rule("device", id));
  }

  async requireRegistration(clientAddress: string): Promise<void> {
    await this.#take(rule("registrationByAddress", clientNetwork(clientAddress)));
    await this.#take(rule("registration"));
  }

  async requireDocument(clientAddress: string): Promise<void> {
    await this.#take(rule("documentByAddress", clientNetwork(clientAddress)));
    await this.#take(rule("document"));
  }

  async #take(limit: RateLimit): Promise<void> {
    const admission = await this.#limits.admit(only(limit), nothing);
    if ("lease" in admission) return admission.lease.settle(0, 0);
    throw tooMany(limit, admission.refusal.retryAfterSeconds ?? 1);
  }
}

function rule(what: keyof typeof perMinute, ...whose: string[]): RateLimit {
  return { id: ["oauth", what, ...whose].join(":"), owner: "key", limit: perMinute[what], windowSeconds };
}

/**
 * Returns the counter of a client's failures at an address. An attacker elsewhere must not lock the client out. A
 * client with an old secret must not lock out others at its address.
 */
function failuresOf(app: Pick<PublishedApp, "id"> | undefined, clientAddress: string): RateLimit {
  return rule("failure", clientNetwork(clientAddress), app?.id ?? "unknown");
}

const only = (limit: RateLimit) => ({ requests: [limit], tokens: [], quotas: [] });

function tooMany({ limit }: RateLimit, seconds: number): GatewayError {
  const retryAfterSeconds = Math.max(1, Math.ceil(seconds));
  return new GatewayError(
    "rate_limit_exceeded",
    `At most ${limit} such requests per minute. Retry in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  );
}
