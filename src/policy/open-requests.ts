// How many requests each key has open in this process, and what they hold: one key must not take the memory and places of all.

import {
  AccountMemory,
  type BufferedBytes,
  type EmptiedListener,
  type HolderIds,
  type KeyBytes,
  type MemoryAccount,
} from "../base/bytes/buffered-bytes.ts";
import { type Chained, ChainedMap } from "../base/chained-map.ts";
import { GatewayError } from "../base/errors.ts";
import type { Principal } from "../domain/principal.ts";

/** Whose requests are counted: a principal, or what is known of one elsewhere. */
export interface OpenParty {
  readonly account: Pick<Principal["account"], "id">;
  readonly keys: readonly [Pick<Principal["keys"][0], "limitId">, ...unknown[]];
}

/** A request's place; `release` gives it back, once. */
export interface OpenSlot {
  /** What the requests of the key hold. */
  readonly memoryAccount: MemoryAccount;
  release(): void;
}

/** The bytes of an account, for as long as one of its keys is known here. */
interface KnownAccount extends Chained<KnownAccount> {
  readonly bytes: AccountMemory;
  keys: number;
}

/** Keys that are known for a while after their last request has ended, so that those in use all the time stay known. */
const maxIdle = 128;

/** A key of which nothing is open and nothing held is as one that was never seen: it takes no memory. */
export class OpenRequests {
  readonly #most: () => number;
  readonly #ledger: BufferedBytes;
  readonly #accounts = new ChainedMap<KnownAccount>();
  readonly #byKey = new ChainedMap<KeySlots>();
  /** Those that became idle last, in a ring. */
  readonly #idle: KeySlots[] = [];
  #nextIdle = 0;

  /** `most`: for each key; asked for every request, as a reload may change it. */
  constructor(most: () => number, ledger: BufferedBytes) {
    this.#most = most;
    this.#ledger = ledger;
  }

  /** Keys that it keeps figures of. */
  get tracked(): number {
    return this.#byKey.size;
  }

  /** Throws `rate_limit_exceeded` where the key has no place left. The two keys of a rotation share theirs. */
  enter({ account, keys: [{ limitId }] }: OpenParty): OpenSlot {
    const slots = this.#byKey.get(limitId) ?? this.#add({ key: limitId, account: account.id });
    const most = this.#most();
    if (slots.open >= most) throw tooMany(most);
    slots.open++;
    return slots;
  }

  /** For a request of the key that is open at another replica and passed on to this one: what it holds here is the key's. */
  lend(ids: HolderIds): OpenSlot {
    const slots = this.#byKey.get(ids.key) ?? this.#add(ids);
    slots.lent++;
    return { memoryAccount: slots.memoryAccount, release: () => slots.takeBack() };
  }

  #add(ids: HolderIds): KeySlots {
    const name = ids.account;
    let account = this.#accounts.get(name);
    if (!account) {
      account = { name, next: undefined, bytes: new AccountMemory(), keys: 0 };
      this.#accounts.add(account);
    }
    account.keys++;
    const slots = new KeySlots(this, this.#ledger, account, ids);
    this.#byKey.add(slots);
    return slots;
  }

  /** Nothing of the key is open or held from now on. The one that has been so for longer than many others is forgotten. */
  idle(slots: KeySlots): void {
    const before = this.#idle[this.#nextIdle];
    this.#idle[this.#nextIdle] = slots;
    this.#nextIdle = (this.#nextIdle + 1) % maxIdle;
    if (!before?.leaveIdle()) return;
    const { account } = before;
    this.#byKey.delete(before);
    if (--account.keys === 0) this.#accounts.delete(account);
  }
}

/** One object for all requests of a key: each of them gives back one place. */
class KeySlots implements OpenSlot, Chained<KeySlots>, EmptiedListener {
  open = 0;
  /** Requests that are open at other replicas. */
  lent = 0;
  /** The key. */
  readonly name: string;
  next: KeySlots | undefined = undefined;
  readonly account: KnownAccount;
  readonly memoryAccount: KeyBytes;
  readonly #among: OpenRequests;
  /** Whether it is among those that became idle last. */
  #wasIdle = false;
  /** Whoever has its memoryAccount may go on with that. */
  #isForgotten = false;

  constructor(among: OpenRequests, ledger: BufferedBytes, account: KnownAccount, ids: HolderIds) {
    this.#among = among;
    this.name = ids.key;
    this.account = account;
    this.memoryAccount = ledger.memoryAccount(account.bytes, ids, this);
  }

  release(): void {
    this.open--;
    this.emptied();
  }

  takeBack(): void {
    this.lent--;
    this.emptied();
  }

  /** Whether it is to be forgotten. */
  leaveIdle(): boolean {
    this.#wasIdle = false;
    this.#isForgotten = this.#isIdle;
    return this.#isForgotten;
  }

  get #isIdle(): boolean {
    return this.open === 0 && this.lent === 0 && this.memoryAccount.held === 0;
  }

  /** Nothing is held any more, or one that was open has ended. */
  emptied(): void {
    if (this.#wasIdle || this.#isForgotten || !this.#isIdle) return;
    this.#wasIdle = true;
    this.#among.idle(this);
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
