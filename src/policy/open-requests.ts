// How many requests each key has open in this process: what one leaves open must not take the memory and places of all.
import { GatewayError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";

/** A request's place; `release` gives it back, once. */
export interface OpenPlace {
  release(): void;
}

/** So many keys are remembered without a request, or as many as have one: most of them come back at once. */
const fewKeys = 1_000;

export class OpenRequests {
  readonly #most: () => number;
  readonly #byKey = new Map<string, KeyPlaces>();
  /** With so many keys, those without a request are forgotten. */
  #crowdedSize = fewKeys;

  /** `most`: for each key; asked for every request, as a reload may change it. */
  constructor(most: () => number) {
    this.#most = most;
  }

  /** Keys that it keeps figures of. */
  get tracked(): number {
    return this.#byKey.size;
  }

  /** Throws `rate_limit_exceeded` where the key has no place left. The two keys of a rotation share theirs. */
  enter({ keys }: Pick<Principal, "keys">): OpenPlace {
    const { limitId } = keys[0];
    let places = this.#byKey.get(limitId);
    const most = this.#most();
    if (places && places.open >= most) throw tooMany(most);
    if (!places) {
      if (this.#byKey.size >= this.#crowdedSize) this.#forget();
      places = new KeyPlaces();
      this.#byKey.set(limitId, places);
    }
    places.open++;
    return places;
  }

  #forget(): void {
    for (const [limitId, { open }] of this.#byKey) if (open === 0) this.#byKey.delete(limitId);
    this.#crowdedSize = fewKeys + 2 * this.#byKey.size;
  }
}

/** One object for all requests of a key: each of them gives back one place. */
class KeyPlaces implements OpenPlace {
  open = 0;

  release(): void {
    this.open--;
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
