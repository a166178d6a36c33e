// Bounds what one account stores: chats, responses and conversations must not fill the disk that all accounts share.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { StoredSizes } from "../../domain/models/stored-response.ts";
import { LruMap } from "../lru-map.ts";

export interface StoredRoomOptions {
  sizes: StoredSizes;
  clock: Pick<Clock, "monotonicMs">;
  /** `stored_chats.account_bytes`. Is read each time: a reload may change it. */
  maxBytes(): number;
}

/** A sum is read again after this long: at once near the bound, and seldom far below it. */
const [nearMs, farMs] = [5_000, 300_000];
/** A sum is read again after this many times as long as reading took: millions of rows must not keep a database busy. */
const restFactor = 100;
/** The part of the bound below which a sum is seldom read again. */
const farPart = 1 / 2;
const maxAccounts = 10_000;

interface Known {
  /** The last sum, and all that was taken since. */
  size: number;
  readAtMs: number;
  /** Milliseconds that the last sum took. */
  readMs: number;
}

/** Characters of a name, a number or a bracket, roughly. */
const smallSize = 16;

/** Estimates the characters of the value as JSON: writing that JSON would take as long as storing it. */
export function roughSizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return smallSize;
  let size = smallSize;
  for (const member of Object.values(value)) size += smallSize + roughSizeOf(member);
  return size;
}

export class StoredRoom {
  readonly #options: StoredRoomOptions;
  readonly #known = new LruMap<Known>(maxAccounts);
  readonly #reading = new Map<string, Promise<Known>>();

  constructor(options: StoredRoomOptions) {
    this.#options = options;
  }

  /** Resolves to false where the account has no room for so many characters more. Rejects where the sum cannot be read. */
  async take(accountId: string, size: number): Promise<boolean> {
    const known = await this.#sumOf(accountId);
    if (known.size + size > this.#options.maxBytes()) return false;
    known.size += size;
    return true;
  }

  /** Takes back what `take` added, as nothing was stored. */
  giveBack(accountId: string, size: number): void {
    const known = this.#known.get(accountId);
    if (known) known.size = Math.max(0, known.size - size);
  }

  /** Throws `request_too_large`. */
  async require(accountId: string, size: number): Promise<void> {
    if (await this.take(accountId, size)) return;
    throw new GatewayError(
      "request_too_large",
      `The stored chats, responses and conversations of this account would have more than ${this.#options.maxBytes()} bytes together (stored_chats.account_bytes). Delete some first, or send \`store: false\`.`,
    );
  }

  async #sumOf(accountId: string): Promise<Known> {
    const known = this.#known.get(accountId);
    if (known && this.#options.clock.monotonicMs() < known.readAtMs + this.#keepMs(known)) return known;
    const reading = this.#reading.get(accountId) ?? this.#read(accountId);
    this.#reading.set(accountId, reading);
    return await reading;
  }

  #keepMs({ size, readMs }: Known): number {
    return Math.max(size < this.#options.maxBytes() * farPart ? farMs : nearMs, readMs * restFactor);
  }

  async #read(accountId: string): Promise<Known> {
    const { clock, sizes } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      const size = await sizes.sizeOf(accountId);
      const readAtMs = clock.monotonicMs();
      const known = { size, readAtMs, readMs: readAtMs - startedMs };
      this.#known.set(accountId, known);
      return known;
    } finally {
      this.#reading.delete(accountId);
    }
  }
}
