// Counts the open requests of each key in this process and their buffered bytes, because one key must not use all
// memory and slots.

import {
  AccountMemory,
  type BufferedBytes,
  type EmptiedListener,
  type KeyBytes,
  type MemoryAccount,
  type MemoryAccountIds,
} from "../base/bytes/buffered-bytes.ts";
import { type Chained, ChainedMap } from "../base/chained-map.ts";
import { GatewayError } from "../base/errors.ts";
import type { Principal } from "../domain/principal.ts";

/** The account and key that requests are counted for: a principal, or ids that another process sent. */
export interface OpenParty {
  readonly account: Pick<Principal["account"], "id">;
  readonly keys: readonly [Pick<Principal["keys"][0], "limitId">, ...unknown[]];
}

/** A slot for a request; call `release` once. */
export interface OpenSlot {
  /** Memory account for the requests of the key. */
  readonly memoryAccount: MemoryAccount;
  release(): void;
}

/** The buffered bytes of an account, kept as long as one of its keys is known here. */
interface KnownAccount extends Chained<KnownAccount> {
  readonly bytes: AccountMemory;
  keys: number;
}

/** Maximum idle keys that stay in memory after their last request, so that keys in constant use stay there. */
const maxIdle = 128;

/** Tracks each key with open requests or buffered bytes, and the last idle keys. Other keys take no memory. */
export class OpenRequests {
  readonly #most: () => number;
  readonly #ledger: BufferedBytes;
  readonly #accounts = new ChainedMap<KnownAccount>();
  readonly #byKey = new ChainedMap<KeySlots>();
  /** Keys that became idle last, in a ring. */
  readonly #idle: KeySlots[] = [];
  #nextIdle = 0;

  /**
   * `most` returns the maximum of open requests for each key. It is called for every request, because a reload may
   * change it.
   */
  constructor(most: () => number, ledger: BufferedBytes) {
    this.#most = most;
    this.#ledger = ledger;
  }

  /** Number of keys with figures in memory. */
  get tracked(): number {
    return this.#byKey.size;
  }

  /**
   * Takes a slot. Throws `rate_limit_exceeded` if the key has no slot left. The two keys of a rotation share their
   * slots.
   */
  enter({ account, keys: [{ limitId }] }: OpenParty): OpenSlot {
    const slots = this.#byKey.get(limitId) ?? this.#add({ key: limitId, account: account.id });
    const most = this.#most();
    if (slots.open >= most) throw tooMany(most);
    slots.open++;
    return slots;
  }

  /**
   * Takes a slot for a request that another replica passed on to this one. Its buffered bytes here count for the key.
   */
  lend(ids: MemoryAccountIds): OpenSlot {
    const slots = this.#byKey.get(ids.key) ?? this.#add(ids);
    slots.lent++;
    return { memoryAccount: slots.memoryAccount, release: () => slots.takeBack() };
  }

  #add(ids: MemoryAccountIds): KeySlots {
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

  /**
   * Called when the key has neither open requests nor buffered bytes. The key that has been idle the longest may be
   * dropped.
   */
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

/** The slots of a key: one object for all its requests, each of which releases one slot. */
class KeySlots implements OpenSlot, Chained<KeySlots>, EmptiedListener {
  open = 0;
  /** Number of open requests that other replicas passed on to this replica. */
  lent = 0;
  /** Id of the key. */
  readonly name: string;
  next: KeySlots | undefined = undefined;
  readonly account: KnownAccount;
  readonly memoryAccount: KeyBytes;
  readonly #among: OpenRequests;
  /** True if the key is in the ring of idle keys. */
  #wasIdle = false;
  /** True after the key was dropped. Callers that have the memory account may still use it. */
  #isForgotten = false;

  constructor(among: OpenRequests, ledger: BufferedBytes, account: KnownAccount, ids: MemoryAccountIds) {
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

  /** Leaves the ring of idle keys. Returns true if the key is to be dropped. */
  leaveIdle(): boolean {
    this.#wasIdle = false;
    this.#isForgotten = this.#isIdle;
    return this.#isForgotten;
  }

  get #isIdle(): boolean {
    return this.open === 0 && this.lent === 0 && this.memoryAccount.total === 0;
  }

  /** Called when the key has no more buffered bytes, or when one of its open requests has ended. */
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
