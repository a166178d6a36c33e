// Records refused requests in the background. Their number is limited for each key and in total, so that a flood of
// them costs almost nothing.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { SweptMap } from "../../base/swept-map.ts";
import type { RefusedRequest, RefusedRequestStore } from "../../domain/usage/refused-request.ts";

export interface RefusedRequestsOptions {
  store: Pick<RefusedRequestStore, "add">;
  clock: Clock;
  log: Log;
  flushMs?: number;
  bounds?: NotedBounds;
}

/** Maximum burst, and the milliseconds after which another request may be recorded. */
export interface NotedBound {
  atOnce: number;
  everyMs: number;
}

export interface NotedBounds {
  ofKey: NotedBound;
  /** The limit of an account, well below the limit of all accounts, so that no account displaces the others. */
  ofAccount: NotedBound;
  ofAll: NotedBound;
}

const defaultFlushMs = 2_000;
/** Bounds of one process: with rows of 300 bytes that are kept for a month, constant floods take 400 MB. */
const defaultBounds: NotedBounds = {
  ofKey: { atOnce: 100, everyMs: 60_000 },
  ofAccount: { atOnce: 200, everyMs: 20_000 },
  ofAll: { atOnce: 1_000, everyMs: 2_000 },
};
/** Maximum rows that wait while the database accepts none. Further rows are dropped. */
const maxPending = 2_000;
/** Rows in one transaction: SQLite runs in the thread that serves requests. */
const batchSize = 100;

/** Rate limit (GCRA) for the recorded requests of one key, of one account, or of all. */
class Notes {
  /** Time at which a whole burst is available again, in monotonic milliseconds. */
  wholeMs = 0;

  hasRoom({ atOnce, everyMs }: NotedBound, nowMs: number): boolean {
    return Math.max(nowMs, this.wholeMs) + everyMs <= nowMs + atOnce * everyMs;
  }

  take({ everyMs }: NotedBound, nowMs: number): void {
    this.wholeMs = Math.max(nowMs, this.wholeMs) + everyMs;
  }
}

export class RefusedRequests {
  readonly #options: RefusedRequestsOptions;
  readonly #bounds: NotedBounds;
  readonly #ofKeys: SweptMap<Notes>;
  readonly #ofAccounts: SweptMap<Notes>;
  readonly #ofAll = new Notes();
  #pending: RefusedRequest[] = [];
  #inWriting = 0;
  #leftOut = 0;
  #lost = 0;
  #failing = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: RefusedRequestsOptions) {
    this.#options = options;
    this.#bounds = options.bounds ?? defaultBounds;
    const isWhole = (notes: Notes) => notes.wholeMs <= options.clock.monotonicMs();
    this.#ofKeys = new SweptMap(isWhole);
    this.#ofAccounts = new SweptMap(isWhole);
  }

  /**
   * Numbers of rows that wait for a write, of requests beyond a bound, and of rows dropped while the database accepted
   * none.
   */
  get figures(): { pending: number; leftOut: number; lost: number } {
    return { pending: this.#pending.length + this.#inWriting, leftOut: this.#leftOut, lost: this.#lost };
  }

  /**
   * Reports whether another request of the key may be recorded; if not, counts it as left out. Callers build the record
   * only if this returns true.
   */
  admits(keyId: string, accountId: string): boolean {
    const { ofKey, ofAccount, ofAll } = this.#bounds;
    const nowMs = this.#options.clock.monotonicMs();
    this.#ofKeys.used(nowMs);
    this.#ofAccounts.used(nowMs);
    const key = this.#ofKeys.get(keyId) ?? new Notes();
    const account = this.#ofAccounts.get(accountId) ?? new Notes();
    const hasRoom = key.hasRoom(ofKey, nowMs) && account.hasRoom(ofAccount, nowMs) && this.#ofAll.hasRoom(ofAll, nowMs);
    if (!hasRoom) {
      this.#leftOut++;
      return false;
    }
    key.take(ofKey, nowMs);
    account.take(ofAccount, nowMs);
    this.#ofAll.take(ofAll, nowMs);
    this.#ofKeys.set(keyId, key);
    this.#ofAccounts.set(accountId, account);
    return true;
  }

  /** Records a request that `admits` accepted. */
  note(refused: RefusedRequest): void {
    if (this.#pending.length >= maxPending) {
      this.#lost++;
      return;
    }
    this.#pending.push(refused);
    this.#schedule();
  }

  /** Writes pending rows. If a write fails, they wait for the next one. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#timer || this.#pending.length === 0) return;
    this.#timer = setTimeout(() => void this.flush(), this.#options.flushMs ?? defaultFlushMs);
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    const { store, log } = this.#options;
    const taken = this.#pending;
    this.#pending = [];
    this.#inWriting = taken.length;
    for (let from = 0; from < taken.length; from += batchSize) {
      if (from > 0) await new Promise(setImmediate);
      try {
        await store.add(taken.slice(from, from + batchSize));
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) log.warn("refused_requests_not_written", { detail: String(error) });
        this.#failing = true;
        const waiting = [...taken.slice(from), ...this.#pending];
        this.#pending = waiting.slice(0, maxPending);
        this.#lost += waiting.length - this.#pending.length;
        break;
      }
    }
    this.#inWriting = 0;
    this.#schedule();
  }
}
