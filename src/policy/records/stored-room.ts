// Limits what one account stores: chats, responses and conversations must not fill the disk that all accounts share.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { StoredSizes } from "../../domain/models/stored-response.ts";
import { LruMap } from "../lru-map.ts";

export interface StoredRoomOptions {
  sizes: StoredSizes;
  clock: Pick<Clock, "monotonicMs">;
  /** Returns `stored_chats.account_bytes`. Called each time, because a reload may change it. */
  maxBytes(): number;
}

/** Milliseconds after which a sum is read again: the first near the limit, the second far below it. */
const [nearMs, farMs] = [5_000, 300_000];
/**
 * Minimum pause between two reads of a sum, as a multiple of the read's duration. Accounts with millions of rows must
 * not keep the database busy.
 */
const restFactor = 100;
/** Fraction of the limit. Below it, an account's sum is seldom read again. */
const farPart = 1 / 2;
const maxAccounts = 10_000;

interface Known {
  /** The last sum that was read, plus all storage taken since. */
  size: number;
  readAtMs: number;
  /** The duration of the last read in milliseconds. */
  readMs: number;
}

/** The assumed number of characters of a name, a number or a bracket. */
const smallSize = 16;

/** Estimates the characters of the value as JSON. Writing the JSON would take as long as storing it. */
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

  /**
   * Takes storage for this many characters. Resolves to false if the account has too little left. Rejects if the sum
   * cannot be read.
   */
  async take(accountId: string, size: number): Promise<boolean> {
    const known = await this.#sumOf(accountId);
    if (known.size + size > this.#options.maxBytes()) return false;
    known.size += size;
    return true;
  }

  /** Returns storage that `take` reserved, because nothing was stored. */
  giveBack(accountId: string, size: number): void {
    const known = this.#known.get(accountId);
    if (known) known.size = Math.max(0, known.size - size);
  }

  /** Takes storage like `take`. Throws `request_too_large` if the account has too little left. */
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
