// How many requests each key has open in this process, and what they hold: one key must not take the memory and places of all.

import { AccountBytes, type HeldBytes, type Holder, type HolderIds } from "../base/bytes/held-bytes.ts";
import type { Clock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import { SweptMap } from "../base/swept-map.ts";
import type { Principal } from "../domain/principal.ts";

/** Whose requests are counted: a principal, or what is known of one elsewhere. */
export interface OpenParty extends Pick<Principal, "open"> {
  readonly account: Pick<Principal["account"], "id">;
  readonly keys: readonly [Pick<Principal["keys"][0], "limitId">, ...unknown[]];
}

/** A request's place; `release` gives it back, once. */
export interface OpenPlace {
  /** What the requests of the key hold. */
  readonly holder: Holder;
  release(): void;
}

/** The bytes of an account, for as long as one of its keys is known here. */
interface KnownAccount {
  readonly id: string;
  readonly bytes: AccountBytes;
  keys: number;
}

export class OpenRequests {
  readonly #most: () => number;
  readonly #clock: Clock;
  readonly #ledger: HeldBytes;
  readonly #accounts = new Map<string, KnownAccount>();
  readonly #byKey = new SweptMap<KeyPlaces>((places, isCrowded) => places.giveUp(isCrowded));

  /** `most`: for each key; asked for every request, as a reload may change it. */
  constructor(most: () => number, clock: Clock, ledger: HeldBytes) {
    this.#most = most;
    this.#clock = clock;
    this.#ledger = ledger;
  }

  /** Keys that it keeps figures of. */
  get tracked(): number {
    return this.#byKey.size;
  }

  /** Throws `rate_limit_exceeded` where the key has no place left. The two keys of a rotation share theirs. */
  enter(principal: OpenParty): OpenPlace {
    this.#byKey.used(this.#clock.monotonicMs());
    const { open } = principal;
    const places = open instanceof KeyPlaces && open.among === this ? open : this.#find(principal);
    const most = this.#most();
    if (places.open >= most) throw tooMany(most);
    places.enter();
    return places;
  }

  /** For a request of the key that is open at another replica and passed on to this one: what it holds here is the key's. */
  lend(ids: HolderIds): OpenPlace {
    this.#byKey.used(this.#clock.monotonicMs());
    const places = this.#placesOf(ids);
    places.lent++;
    return { holder: places.holder, release: () => places.lent-- };
  }

  #find(principal: OpenParty): KeyPlaces {
    const places = this.#placesOf({ key: principal.keys[0].limitId, account: principal.account.id });
    principal.open = places;
    return places;
  }

  #placesOf(ids: HolderIds): KeyPlaces {
    let places = this.#byKey.get(ids.key);
    if (!places) {
      places = this.#newPlaces(ids);
      this.#byKey.set(ids.key, places);
    }
    return places;
  }

  #newPlaces(ids: HolderIds): KeyPlaces {
    const id = ids.account;
    let account = this.#accounts.get(id);
    if (!account) {
      account = { id, bytes: new AccountBytes(), keys: 0 };
      this.#accounts.set(id, account);
    }
    account.keys++;
    return new KeyPlaces(this, this.#ledger.holder(account.bytes, ids), account);
  }

  /** One of its keys is not known here any more. */
  keyForgotten(account: KnownAccount): void {
    if (--account.keys === 0) this.#accounts.delete(account.id);
  }
}

/** One object for all requests of a key: each of them gives back one place. */
class KeyPlaces implements OpenPlace {
  open = 0;
  /** Requests that are open at other replicas. */
  lent = 0;
  /** Since it was last asked whether they may go. */
  #wasUsed = false;
  #among: OpenRequests | undefined;
  readonly holder: Holder;
  readonly #account: KnownAccount;

  constructor(among: OpenRequests, holder: Holder, account: KnownAccount) {
    this.#among = among;
    this.holder = holder;
    this.#account = account;
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
    const isOver = this.open === 0 && this.lent === 0 && (isCrowded || !this.#wasUsed);
    this.#wasUsed = false;
    if (isOver) {
      this.#among?.keyForgotten(this.#account);
      this.#among = undefined;
    }
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
