// Counts the requests that limits refuse, in memory, and adds the counts to the store in the background.
import type { Clock } from "../../base/clock.ts";
import { GatewayError, type RefusalReason } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { RefusalCount, RefusalStore } from "../../domain/limits/refusal.ts";
import type { Principal } from "../../domain/principal.ts";

export interface RefusalCountsOptions {
  store: Pick<RefusalStore, "add">;
  clock: Pick<Clock, "nowSeconds">;
  log: Log;
  flushMs?: number;
  /**
   * Maximum counts that wait for a write. Beyond it, counts of one account are merged; beyond twice as many, new counts
   * are dropped.
   */
  maxPending?: number;
}

/** A refusal of a request whose credential and model are known. */
export type RefusalNow = Omit<RefusalCount, "start" | "requests" | "lastAt" | "keyId" | "model"> & {
  keyId: string;
  model: string;
};

const hourSeconds = 3600;
const defaultFlushMs = 3_000;
const defaultMaxPending = 10_000;
/** Counts in one transaction: SQLite runs in the thread that serves requests. */
const batchSize = 200;

export class RefusalCounts {
  readonly #options: RefusalCountsOptions;
  readonly #maxPending: number;
  #pending = new Map<string, RefusalCount>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** The next write, which has not begun yet; its callers share it. */
  #nextWrite: Promise<void> | undefined;
  #failing = false;
  #givenUp = 0;

  constructor(options: RefusalCountsOptions) {
    this.#options = options;
    this.#maxPending = options.maxPending ?? defaultMaxPending;
  }

  /** Number of counts that wait for a write. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Counts a request that ended with `error`, if that is the refusal of a limit. */
  count(principal: Pick<Principal, "account" | "environment" | "appId" | "keys">, model: string, error: unknown): void {
    if (!(error instanceof GatewayError) || error.refusal === undefined) return;
    const { account, environment, appId, keys } = principal;
    this.add({ accountId: account.id, environment, keyId: keys[0].id, appId, model, reason: error.refusal });
  }

  /** Counts a refusal at the current time. */
  add({ accountId, environment, keyId, appId, model, reason }: RefusalNow): void {
    const at = this.#options.clock.nowSeconds();
    const start = at - (at % hourSeconds);
    // The name needs no account, environment or app, because each credential has only one of each.
    const known = this.#pending.get(nameOf(start, reason, keyId, model));
    if (known) {
      known.requests++;
      known.lastAt = at;
      return;
    }
    this.#add({ accountId, environment, start, keyId, appId, model, reason, requests: 1, lastAt: at });
    this.#schedule();
  }

  /** Writes pending counts. If a write fails, they wait for the next one. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // The callers all share the next write: if the database fails, separate writes would each try and wait again.
    this.#nextWrite ??= this.#writing.then(() => {
      this.#nextWrite = undefined;
      return this.#write();
    });
    this.#writing = this.#nextWrite;
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#timer || this.#pending.size === 0) return;
    this.#timer = setTimeout(() => void this.flush(), this.#options.flushMs ?? defaultFlushMs);
    this.#timer.unref();
  }

  #add(count: RefusalCount): void {
    const { start, reason, keyId, model, accountId, environment } = count;
    const name =
      keyId === null || model === null
        ? nameOfRest(start, reason, accountId, environment)
        : nameOf(start, reason, keyId, model);
    const known = this.#pending.get(name);
    if (known) {
      known.requests += count.requests;
      known.lastAt = Math.max(known.lastAt, count.lastAt);
    } else if (this.#pending.size < this.#maxPending || (keyId === null && this.#pending.size < 2 * this.#maxPending)) {
      this.#pending.set(name, count);
    } else if (keyId !== null) {
      this.#add({ ...count, keyId: null, appId: null, model: null });
    } else {
      this.#givenUp += count.requests;
    }
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const counts = [...this.#pending.values()];
    this.#pending = new Map();
    const { store, log } = this.#options;
    for (let from = 0; from < counts.length; from += batchSize) {
      if (from > 0) await new Promise(setImmediate);
      try {
        await store.add(counts.slice(from, from + batchSize));
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) log.warn("refusals_not_written", { detail: String(error), rows: counts.length - from });
        this.#failing = true;
        for (const count of counts.slice(from)) this.#add(count);
        break;
      }
    }
    if (this.#givenUp > 0) log.warn("refusals_not_counted", { requests: this.#givenUp });
    this.#givenUp = 0;
    this.#schedule();
  }
}

function nameOf(start: number, reason: RefusalReason, keyId: string, model: string): string {
  return `${start} ${reason} ${keyId} ${model}`;
}

/** The second space stands for an empty key id, so that the name differs from any name with a key. */
function nameOfRest(start: number, reason: RefusalReason, accountId: string, environment: string): string {
  return `${start} ${reason}  ${accountId} ${environment}`;
}
