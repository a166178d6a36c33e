// Bounds how often one address may ask what needs no credential, in the memory of this process: before anything is read for it.
import type { Clock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import { clientNetwork } from "./client-network.ts";
import { LruMap } from "./lru-map.ts";

/**
 * In a minute, and as many at once. Generous, as behind one address may be an office or a load balancer: what costs more
 * than an answer from memory has tighter limits of its own besides, by person, app or link.
 */
export const addressLimits = {
  /** For monitors and load balancers. */
  monitor: 3_000,
  /** The same for everybody: scripts, styles, keys, descriptions. */
  file: 6_000,
  page: 1_200,
  /** What a page sends. */
  form: 300,
  /** For programs: tokens, and clients of the authorization server. */
  client: 1_200,
  /** For machines that join and connect. */
  machine: 300,
  /** Credentials that are nobody's, each of which costs a look into the database. */
  unknown: 600,
} as const;
export type AddressLimit = keyof typeof addressLimits;

const windowMs = 60_000;
/** At most about 10 MB. Whoever has more networks than this is not held by a limit of one. */
const maxKept = 50_000;

export interface AddressThrottleOptions {
  clock: Pick<Clock, "monotonicMs">;
  /** In place of those above; a test reaches them sooner. */
  limits?: Partial<Record<AddressLimit, number>> | undefined;
}

export class AddressThrottle {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #limits: Readonly<Record<AddressLimit, number>>;
  /** By limit and network: when all of it is there again, in monotonic milliseconds (GCRA). */
  readonly #wholeMs = new LruMap<number>(maxKept);

  constructor({ clock, limits }: AddressThrottleOptions) {
    this.#clock = clock;
    this.#limits = { ...addressLimits, ...limits };
  }

  /** Counts one, or gives the refusal, which counts nothing. */
  take(what: AddressLimit, address: string): GatewayError | undefined {
    const id = idOf(what, address);
    const waitMs = this.#waitMs(what, id);
    if (waitMs > 0) return refusal(what, waitMs);
    const nowMs = this.#clock.monotonicMs();
    this.#wholeMs.set(id, Math.max(nowMs, this.#wholeMs.get(id) ?? 0) + windowMs / this.#limits[what]);
    return undefined;
  }

  /** Says what `take` says, and counts nothing either way. */
  peek(what: AddressLimit, address: string): GatewayError | undefined {
    const waitMs = this.#waitMs(what, idOf(what, address));
    return waitMs > 0 ? refusal(what, waitMs) : undefined;
  }

  /** Milliseconds until there is room for one more. */
  #waitMs(what: AddressLimit, id: string): number {
    const nowMs = this.#clock.monotonicMs();
    const wholeMs = this.#wholeMs.get(id);
    return wholeMs === undefined ? 0 : wholeMs + windowMs / this.#limits[what] - nowMs - windowMs;
  }
}

const idOf = (what: AddressLimit, address: string) => `${what} ${clientNetwork(address)}`;

function refusal(what: AddressLimit, waitMs: number): GatewayError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const asked = what === "unknown" ? "API keys and sessions that are nobody's" : "requests of this kind";
  return new GatewayError(
    "rate_limit_exceeded",
    `Too many ${asked} came from your network. Retry in ${retryAfterSeconds} s.`,
    { retryAfterSeconds, detail: `address_limit_${what}` },
  );
}
