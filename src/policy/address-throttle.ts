// Limits how often one address may send requests that need no credential, in the memory of this process and before
// anything is read for the request.
import type { Clock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import { clientNetwork } from "./client-network.ts";
import { LruMap } from "./lru-map.ts";

/**
 * Maximum requests of an address per minute, which are also the maximum burst. The limits are generous because an
 * office or a load balancer may use one address. Requests that cost more than an answer from memory also have tighter
 * limits by person, app or link.
 */
export const addressLimits = {
  /** Requests of monitors and load balancers. */
  monitor: 3_000,
  /** Public files: scripts, styles, keys and metadata. */
  file: 6_000,
  page: 1_200,
  /** Forms that pages send. */
  form: 300,
  /** Requests of programs: tokens, and clients of the authorization server. */
  client: 1_200,
  /** Requests of machines that join as nodes, or connect as nodes. */
  machine: 300,
  /** Unknown credentials, each of which costs a database look-up. */
  unknown: 600,
} as const;
export type AddressLimit = keyof typeof addressLimits;

const windowMs = 60_000;
/**
 * Maximum remembered entries, one for each limit and network, which take at most about 10 MB. An attacker with more
 * networks than this is not limited.
 */
const maxKept = 50_000;

export interface AddressThrottleOptions {
  clock: Pick<Clock, "monotonicMs">;
  /** Replaces the limits above. Tests use lower ones. */
  limits?: Partial<Record<AddressLimit, number>> | undefined;
}

export class AddressThrottle {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #limits: Readonly<Record<AddressLimit, number>>;
  /** Time at which the whole limit is available again, in monotonic milliseconds (GCRA), by limit and network. */
  readonly #wholeMs = new LruMap<number>(maxKept);

  constructor({ clock, limits }: AddressThrottleOptions) {
    this.#clock = clock;
    this.#limits = { ...addressLimits, ...limits };
  }

  /** Counts a request, or returns the refusal without counting. */
  take(what: AddressLimit, address: string): GatewayError | undefined {
    const id = idOf(what, address);
    const waitMs = this.#waitMs(what, id);
    if (waitMs > 0) return refusal(what, waitMs);
    const nowMs = this.#clock.monotonicMs();
    this.#wholeMs.set(id, Math.max(nowMs, this.#wholeMs.get(id) ?? 0) + windowMs / this.#limits[what]);
    return undefined;
  }

  /** Returns the refusal that a request would get now, without counting a request. */
  peek(what: AddressLimit, address: string): GatewayError | undefined {
    const waitMs = this.#waitMs(what, idOf(what, address));
    return waitMs > 0 ? refusal(what, waitMs) : undefined;
  }

  /** Returns the milliseconds until another request is allowed; zero or less if one is allowed now. */
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
