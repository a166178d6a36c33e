// How many requests each key has open in this process: what one leaves open must not take the memory and places of all.
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { SweptMap } from "../domain/swept-map.ts";

/** A request's place; `release` gives it back, once. */
export interface OpenPlace {
  release(): void;
}

export class OpenRequests {
  readonly #most: () => number;
  readonly #clock: Clock;
  readonly #byKey = new SweptMap<KeyPlaces>((places, isCrowded) => places.giveUp(isCrowded));

  /** `most`: for each key; asked for every request, as a reload may change it. */
  constructor(most: () => number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
  }

  /** Keys that it keeps figures of. */
  get tracked(): number {
    return this.#byKey.size;
  }

  /** Throws `rate_limit_exceeded` where the key has no place left. The two keys of a rotation share theirs. */
  enter(principal: Pick<Principal, "keys" | "open">): OpenPlace {
    this.#byKey.used(this.#clock.monotonicMs());
    const { open } = principal;
    const places = open instanceof KeyPlaces && open.among === this ? open : this.#find(principal);
    const most = this.#most();
    if (places.open >= most) throw tooMany(most);
    places.enter();
    return places;
  }

  #find(principal: Pick<Principal, "keys" | "open">): KeyPlaces {
    const { limitId } = principal.keys[0];
    let places = this.#byKey.get(limitId);
    if (!places) {
      places = new KeyPlaces(this);
      this.#byKey.set(limitId, places);
    }
    principal.open = places;
    return places;
  }
}

/** One object for all requests of a key: each of them gives back one place. */
class KeyPlaces implements OpenPlace {
  open = 0;
  /** Since it was last asked whether they may go. */
  #wasUsed = false;
  #among: OpenRequests | undefined;

  constructor(among: OpenRequests) {
    this.#among = among;
  }

  /** Undefined once they were given up: the next request of the key gets others. */
  get among(): OpenRequests | undefined {
    return this.#among;
  }

  enter(): void {
    this.open++;
    this.#wasUsed = true;
  }

  release(): void {
    this.open--;
  }

  giveUp(isCrowded: boolean): boolean {
    const isOver = this.open === 0 && (isCrowded || !this.#wasUsed);
    this.#wasUsed = false;
    if (isOver) this.#among = undefined;
    return isOver;
  }
}

function tooMany(most: number): GatewayError {
  const open = most === 1 ? "1 request" : `${most} requests`;
  return new GatewayError(
    "rate_limit_exceeded",
    `This key has ${open} open, the most that it may have at the same time. Retry when one of them has ended.`,
    { retryAfterSeconds: 1 },
  );
}
