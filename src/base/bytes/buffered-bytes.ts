// Counts the bytes of requests and responses that the process holds in memory, and limits their total.
import { BlamelessError, type GatewayError } from "../errors.ts";

/**
 * `heads`: incomplete heads of requests. `requests`: bodies. `received`: bytes not read yet. `answers`: whole
 * answers. `events`: incomplete events of a stream. `chats`: answers collected for storage. `unsent`: bytes that a
 * client or node has not accepted yet. `tunnels`: messages of nodes that are incomplete or not read yet. `cache`:
 * cached answers. `continued`: the text of streams that another model server may continue.
 */
export const bufferKinds = [
  ...(["heads", "requests", "received", "answers", "events", "chats", "unsent", "tunnels"] as const),
  "cache",
  "continued",
] as const;
export type BufferKind = (typeof bufferKinds)[number];

/** The limit that a refused reservation would have exceeded. */
export const bufferBounds = ["key", "account", "process"] as const;
export type BufferBound = (typeof bufferBounds)[number];

/** A key and its account, with the ids that all replicas know. */
export interface MemoryAccountIds {
  readonly key: string;
  readonly account: string;
}

/** Counts the bytes that are buffered for one owner, such as an API key. */
export interface MemoryAccount {
  /** Undefined if the memory account does not belong to an API key. */
  readonly ids?: MemoryAccountIds | undefined;
  /** Reserves more bytes. If a limit would be exceeded, reserves nothing and returns the refusal. */
  take(kind: BufferKind, bytes: number): GatewayError | undefined;
  release(kind: BufferKind, bytes: number): void;
}

/** Called when a memory account holds no bytes any more. */
export interface EmptiedListener {
  emptied(): void;
}

/** The error if a reservation of bytes, or a call by the gateway itself, would exceed a limit. */
export class NoRoomError extends BlamelessError {}

export const defaultMaxBufferedBytes = 128 * 1024 * 1024;

/**
 * Fractions of `maxBytes`: the part that all keys share, and the small part that a key may hold even if the shared part
 * is full (64 KiB by default).
 */
const [shared, little] = [7 / 8, 1 / 2048];

/** The bytes that all keys of one account hold together. */
export class AccountMemory {
  total = 0;
}

export class BufferedBytes {
  /** Maximum bytes that all memory accounts may hold together. */
  maxBytes: number;
  total = 0;
  readonly byKind: Record<BufferKind, number> = {
    heads: 0,
    requests: 0,
    received: 0,
    answers: 0,
    events: 0,
    chats: 0,
    unsent: 0,
    tunnels: 0,
    cache: 0,
    continued: 0,
  };
  /** Number of keys, visitors and replicas that hold bytes now. */
  memoryAccounts = 0;
  /** Number of refusals since the start, by the exceeded bound. */
  readonly refused: Record<BufferBound, number> = { key: 0, account: 0, process: 0 };
  /** The memory account of all clients whose credential is missing or not yet known. */
  readonly visitors: KeyBytes;
  /** The memory account of other replicas, for requests that do not name an API key. */
  readonly replicas: KeyBytes;
  /**
   * A memory account for buffers that have a limit for each connection. Their bytes count towards the total, but are
   * never refused.
   */
  readonly bounded: MemoryAccount;
  #hasLargeCopies = false;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.visitors = this.memoryAccount(new AccountMemory());
    this.replicas = this.memoryAccount(new AccountMemory());
    this.bounded = {
      take: (kind, bytes) => {
        this.add(kind, bytes);
        return undefined;
      },
      release: (kind, bytes) => this.add(kind, -bytes),
    };
  }

  /**
   * Creates the memory account of a key of `account`. `listener` is called each time the key holds no bytes any more.
   */
  memoryAccount(account: AccountMemory, ids?: MemoryAccountIds, listener?: EmptiedListener): KeyBytes {
    return new KeyBytes(this, account, ids, listener);
  }

  /** Maximum bytes of a key while no other key holds any. */
  get maxBytesOfKey(): number {
    return Math.floor((this.maxBytes * shared) / 3);
  }

  get maxBytesOfAccount(): number {
    return Math.floor((this.maxBytes * shared) / 2);
  }

  /** Reports whether memory is so full that a key without buffered bytes cannot reserve its minimum. */
  get isFull(): boolean {
    return this.maxBytes - this.total < Math.floor(this.maxBytes * little);
  }

  hasRoomFor(bytes: number): boolean {
    return this.total + bytes <= this.maxBytes;
  }

  /**
   * Reserves bytes for the process only, not for a key, if the total stays within `maxBytes`. Returns false otherwise.
   */
  takeFree(kind: BufferKind, bytes: number): boolean {
    if (!this.hasRoomFor(bytes)) {
      this.refused.process++;
      return false;
    }
    this.add(kind, bytes);
    return true;
  }

  /**
   * Reserves memory for temporary copies of a body. Returns a function that releases the memory, or the refusal. One
   * request at a time may hold large copies that count only towards the process. Other copies count on `memoryAccount`.
   */
  takeCopies(memoryAccount: MemoryAccount, bytes: number): (() => void) | GatewayError {
    if (this.#isLarge(bytes) && !this.#hasLargeCopies && this.takeFree("requests", bytes)) {
      this.#hasLargeCopies = true;
      return () => {
        this.#hasLargeCopies = false;
        this.add("requests", -bytes);
      };
    }
    return memoryAccount.take("requests", bytes) ?? (() => memoryAccount.release("requests", bytes));
  }

  /**
   * Returns the bytes that must be within a key's limit, so that the key can hold `bytes` and temporary copies. Large
   * copies count only a third: they reduce the free bytes, of which a single key may hold a third.
   */
  neededWithCopies(bytes: number, copies: number): number {
    return bytes + (this.#isLarge(copies) ? Math.ceil(copies / 3) : copies);
  }

  #isLarge(copies: number): boolean {
    return 2 * copies > this.maxBytesOfKey;
  }

  /** Adds bytes without checking any limit. A negative number releases bytes. */
  add(kind: BufferKind, bytes: number): void {
    this.total += bytes;
    this.byKind[kind] += bytes;
  }

  /**
   * Counts bytes that will be read within a few ticks of the event loop. They count neither on a memory account nor in
   * the total.
   */
  received(bytes: number): void {
    this.byKind.received += bytes;
  }

  /** Counts bytes of caches. Caches have their own limit, and drop entries when other code needs the memory. */
  kept(bytes: number): void {
    this.byKind.cache += bytes;
  }

  /**
   * Returns the refusal for the first exceeded bound. `key` and `account` are the bytes that the key and the account
   * would hold.
   */
  refusal(key: number, account: number): NoRoomError {
    if (key > this.maxBytesOfKey) return this.#refused("key", tooMuch("this key", this.maxBytesOfKey));
    if (account > this.maxBytesOfAccount) {
      return this.#refused("account", tooMuch("this account", this.maxBytesOfAccount));
    }
    return this.#refused("process", serverFull(`${this.total} of ${this.maxBytes} bytes are held`));
  }

  #refused(bound: BufferBound, error: NoRoomError): NoRoomError {
    this.refused[bound]++;
    return error;
  }
}

/**
 * Limits a key to half of the bytes that stay free, and an account to all of them. So a single key gets at most a third
 * of seven eighths of `maxBytes`, a single account half. The more bytes are held, the less each key may take, so the
 * number of keys does not matter (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
 * switches", 1998). The last eighth is for ordinary requests of keys that hold hardly any bytes.
 */
export class KeyBytes implements MemoryAccount {
  readonly ids: MemoryAccountIds | undefined;
  readonly #ledger: BufferedBytes;
  readonly #account: AccountMemory;
  readonly #listener: EmptiedListener | undefined;
  #total = 0;

  constructor(ledger: BufferedBytes, account: AccountMemory, ids?: MemoryAccountIds, listener?: EmptiedListener) {
    this.#ledger = ledger;
    this.#account = account;
    this.ids = ids;
    this.#listener = listener;
  }

  get total(): number {
    return this.#total;
  }

  take(kind: BufferKind, bytes: number): GatewayError | undefined {
    const ledger = this.#ledger;
    const key = this.#total + bytes;
    const account = this.#account.total + bytes;
    const free = ledger.maxBytes - ledger.total - bytes;
    const most = free - (1 - shared) * ledger.maxBytes;
    if (2 * key > most || account > most) {
      const isLittle = free >= 0 && key <= ledger.maxBytes * little && account <= ledger.maxBytesOfAccount;
      if (!isLittle) return ledger.refusal(key, account);
    }
    this.#change(kind, bytes);
    return undefined;
  }

  release(kind: BufferKind, bytes: number): void {
    this.#change(kind, -bytes);
    if (this.#total === 0) this.#listener?.emptied();
  }

  /**
   * Changes the number of held bytes. The caller must release exactly what was taken, because otherwise
   * `memoryAccounts` counts this account forever.
   */
  #change(kind: BufferKind, more: number): void {
    if (this.#total === 0) this.#ledger.memoryAccounts++;
    this.#total += more;
    if (this.#total === 0) this.#ledger.memoryAccounts--;
    this.#account.total += more;
    this.#ledger.add(kind, more);
  }
}

function serverFull(detail: string): NoRoomError {
  return new NoRoomError(
    "service_unavailable",
    "The server holds as many bytes of requests and answers as it may at the moment. Retry in 2 seconds.",
    { retryAfterSeconds: 2, detail },
  );
}

function tooMuch(whose: string, maxBytes: number): NoRoomError {
  return new NoRoomError(
    "rate_limit_exceeded",
    `The requests of ${whose} that are under way hold ${maxBytes} bytes of bodies and answers, the most that they may. Retry when one of them has ended.`,
    { retryAfterSeconds: 1 },
  );
}

/**
 * Returns `refusal`, or an error that advises against a retry if a request needs more bytes than a key may ever hold.
 */
export function lastingRefusal(refusal: GatewayError, neededBytes: number): GatewayError {
  const { maxBytesOfKey } = bufferedBytes;
  if (neededBytes <= maxBytesOfKey) return refusal;
  return new NoRoomError(
    "request_too_large",
    `The request needs ${neededBytes} bytes of memory at once, and one key may hold ${maxBytesOfKey} here. Send less at once, or have an operator raise limits.held_bytes.`,
    { shouldRetry: false },
  );
}

/** The counter for all servers and clients, because they share the memory of the process. */
export const bufferedBytes = new BufferedBytes(defaultMaxBufferedBytes);
