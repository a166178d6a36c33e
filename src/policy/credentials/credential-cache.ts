// Caches key chains for as long as the store has not changed, so that a known credential costs no read.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Account } from "../../domain/account.ts";
import { runningRaises } from "../../domain/limits/limit-requests.ts";
import type { LimitSet } from "../../domain/limits/limits.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { ApiKeyRecord, KeyChain, KeyStore } from "../../domain/principal.ts";
import { withDeadline } from "../deadline.ts";
import { LruMap } from "../lru-map.ts";
import { Turns } from "../turns.ts";
import { type CachedChain, CachedChains, type Chain } from "./cached-chain.ts";
import { RevisionWatcher } from "./revision-watcher.ts";
import { SecretMap } from "./secret-map.ts";

export interface CredentialCacheOptions {
  keys: Pick<KeyStore, "findChainByDigest" | "findChainById" | "credentialRevision" | "endDue">;
  clock: Clock;
  log: Log;
  /** Returns the limits that requests of the chain count against; called once for each entry. */
  limitsOf(chain: Chain): LimitSet;
  /** Returns the highest priority that an account's requests may have. Default: the normal priority. */
  priorityOf?(account: Account): Priority;
  /** Called for a key that was found by its digest under an older secret, with its digest under the current one. */
  renewals?: { keyFound(key: Pick<ApiKeyRecord, "id" | "digest">, digest: string): void } | undefined;
  /** Called after cached entries were dropped because a credential may have changed. */
  onDropped?(): void;
  /** Reloads the data that `limitsOf` depends on, after a change by any process. */
  reread?(): Promise<void>;
  /** Seconds for which entries stay valid while the store cannot be asked. */
  graceSeconds?: number;
  pollMs?: number;
  /** Maximum number of keys. */
  capacity?: number;
}

/**
 * A look-up. `digests` returns the digests that the store may have for the key, and is called only if the store is
 * asked.
 */
type Lookup = { by: "key"; key: string; index: string; digests: () => Digests } | { by: "id"; index: string };

/** A key's digests: under the current secret, and under the secrets that it replaces. */
export type Digests = readonly [current: string, ...older: string[]];

const defaultGraceSeconds = 300;
const defaultCapacity = 100_000;
/** Maximum cached keys that were found by id, as for tokens; equal to the maximum of cached tokens. */
const maxByToken = 50_000;
/** Maximum concurrent reads and waiting reads: a flood of made-up keys gets 503 instead of reaching the store. */
const maxReads = 32;
const maxWaiting = 2_000;
const readMs = 5_000;
/**
 * If the keys of a chain have more characters than this as JSON, the chain is long. Of shorter chains, only the number
 * is limited.
 */
const ordinaryLength = 16 * 1024;
/**
 * Maximum characters of all long chains together, because a client can make any number of keys with very long lists.
 */
const maxLongLength = 32 * 1024 * 1024;
/** Maximum attempts of a read, which is repeated if the store changed meanwhile. */
const maxAttempts = 10;

export class CredentialCache {
  readonly #options: CredentialCacheOptions;
  readonly #watcher: RevisionWatcher;
  readonly #byKey: SecretMap<CachedChain>;
  readonly #byId: LruMap<CachedChain>;
  /** Reads in progress, by `memoryIndex` of keys and by ids. These cannot collide: only ids have an underscore. */
  readonly #loading = new Map<string, Promise<CachedChain | undefined>>();
  readonly #turns = new Turns(maxReads, maxWaiting);
  readonly #graceMs: number;
  readonly #chains: CachedChains;
  /** The entries of long chains, and their characters together. */
  readonly #long = new Set<CachedChain>();
  #longLength = 0;
  /** The number of changes so far. A read that began under another generation is neither used nor cached. */
  #generation = 0;

  constructor(options: CredentialCacheOptions) {
    this.#options = options;
    this.#chains = new CachedChains(options.limitsOf, options.priorityOf);
    const capacity = options.capacity ?? defaultCapacity;
    this.#byKey = new SecretMap(capacity);
    this.#byId = new LruMap(Math.min(capacity, maxByToken));
    this.#graceMs = (options.graceSeconds ?? defaultGraceSeconds) * 1000;
    const { keys, clock, log, pollMs, reread } = options;
    this.#watcher = new RevisionWatcher({
      ...{ keys, clock, log, onChange: (ids) => this.#changed(ids) },
      ...(reread ? { reread } : {}),
      ...(pollMs === undefined ? {} : { pollMs }),
    });
  }

  /** Starts to watch the store for changes by other processes. */
  start(): void {
    this.#watcher.start();
  }

  close(): void {
    this.#watcher.close();
  }

  /** Called when another process reports a change, perhaps with ids. */
  hint(ids?: readonly string[]): Promise<void> {
    return this.#watcher.hint(ids);
  }

  /** Checks within a second whether the store answers and, if not, whether any cached entry is still valid. */
  async checkStore(): Promise<"ok" | "away" | "gone"> {
    await this.#watcher.ask();
    return this.storeStatus;
  }

  /** The result of the last check, at most about a second old. */
  get storeStatus(): "ok" | "away" | "gone" {
    if (!this.#watcher.isAway) return "ok";
    return this.#watcher.unconfirmedMs() > this.#graceMs || this.#isEmpty ? "gone" : "away";
  }

  /** Drops all cached entries. Results of reads in progress are not used either. */
  invalidate(): void {
    this.#generation++;
    this.#byKey.clear();
    this.#byId.clear();
    this.#dropShared();
    this.#options.onDropped?.();
  }

  /** Call if the result of `limitsOf` changes. If the store cannot be asked, cached keys stay in use. */
  limitsChanged(): void {
    if (!this.#watcher.isAway) {
      this.invalidate();
      return;
    }
    this.#generation++;
    this.#chains.clear();
    const renewed = ({ principal }: CachedChain) => this.#made(principal, this.#options.clock.nowSeconds());
    this.#byKey.replaceEach(renewed);
    this.#byId.replaceEach(renewed);
  }

  /** Removes raised limits that have ended from the entry, without asking the store. */
  endRaises(entry: CachedChain, nowSeconds: number): void {
    entry.renew(this.#made(entry.principal, nowSeconds));
  }

  #made({ keys, account }: Chain, nowSeconds: number): CachedChain {
    if (!account.raises) return this.#chains.of({ keys, account });
    return this.#chains.of({ keys, account: { ...account, raises: runningRaises(account.raises, nowSeconds) } });
  }

  get #isEmpty(): boolean {
    return this.#byKey.size + this.#byId.size === 0;
  }

  #changed(ids?: readonly string[]): void {
    if (ids) this.#forget(new Set(ids));
    else this.invalidate();
  }

  /** Drops only the entries that depend on these ids. All other entries stay, because the store may be unavailable. */
  #forget(ids: ReadonlySet<string>): void {
    this.#generation++;
    const isAbout = (entry: CachedChain) => entry.dependsOn(ids);
    this.#byKey.forgetWhere(isAbout);
    this.#byId.forgetWhere(isAbout);
    this.#options.onDropped?.();
  }

  /** Number of cached credentials, and milliseconds since the store last confirmed them. */
  get figures(): { cached: number; unconfirmedMs: number } {
    return { cached: this.#byKey.size + this.#byId.size, unconfirmedMs: this.#watcher.unconfirmedMs() };
  }

  /** Returns a cached key if it is valid without asking the store. */
  warm(key: string): CachedChain | undefined {
    const unconfirmedMs = this.#watcher.unconfirmedMs();
    if (this.#watcher.freshness(unconfirmedMs) === "overdue" || unconfirmedMs > this.#graceMs) return undefined;
    return this.#byKey.get(key);
  }

  /**
   * Finds a key. `index` is the key's `memoryIndex`. Returns a promise only if the store must be asked; rejects with
   * `service_unavailable` if that fails.
   */
  byKey(key: string, index: string, digests: () => Digests): CachedChain | Promise<CachedChain | undefined> {
    return this.#get({ by: "key", key, index, digests });
  }

  byId(id: string): CachedChain | Promise<CachedChain | undefined> {
    return this.#get({ by: "id", index: id });
  }

  #get(lookup: Lookup): CachedChain | Promise<CachedChain | undefined> {
    const found = () => this.#known(lookup) ?? this.#load(lookup);
    return this.#watcher.freshness() === "overdue" ? this.#watcher.ask().then(found) : found();
  }

  #known(lookup: Lookup): CachedChain | undefined {
    // Within the grace period, an entry is valid even if the store is unavailable.
    if (this.#watcher.unconfirmedMs() > this.#graceMs) return undefined;
    return lookup.by === "key" ? this.#byKey.get(lookup.key) : this.#byId.get(lookup.index);
  }

  #keep(lookup: Lookup, entry: CachedChain): void {
    if (lookup.by === "key") this.#byKey.set(lookup.key, entry);
    else this.#byId.set(lookup.index, entry);
  }

  /**
   * Makes room for a long chain. If there is too little, all long chains are dropped, and read again at their next use.
   */
  #boundLong(entry: CachedChain, { keys }: KeyChain): void {
    const { length } = JSON.stringify(keys);
    if (length <= ordinaryLength) return;
    if (this.#longLength + length > maxLongLength) {
      const isLong = (one: CachedChain) => this.#long.has(one);
      this.#byKey.forgetWhere(isLong);
      this.#byId.forgetWhere(isLong);
      this.#dropShared();
    }
    this.#long.add(entry);
    this.#longLength += length;
  }

  #dropShared(): void {
    this.#chains.clear();
    this.#long.clear();
    this.#longLength = 0;
  }

  /** Requests for the same credential share one read. */
  #load(lookup: Lookup): Promise<CachedChain | undefined> {
    const { index } = lookup;
    const shared = this.#loading.get(index);
    if (shared) return shared;
    const turn = this.#turns.run(() => this.#read(lookup));
    if (!turn) throw unavailable("too_many_lookups");
    const loading = turn.finally(() => this.#loading.delete(index));
    this.#loading.set(index, loading);
    return loading;
  }

  /** Unknown credentials are not cached: made-up ones must not displace real ones. */
  async #read(lookup: Lookup): Promise<CachedChain | undefined> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const generation = this.#generation;
      const chain = await this.#ask(lookup);
      if (generation !== this.#generation) continue;
      const entry = chain && this.#made(chain, this.#options.clock.nowSeconds());
      if (entry) {
        this.#boundLong(entry, chain);
        this.#keep(lookup, entry);
      }
      return entry;
    }
    throw unavailable("changed_while_read");
  }

  async #ask(lookup: Lookup): Promise<KeyChain | undefined> {
    const { keys, renewals } = this.#options;
    try {
      if (lookup.by === "id") return await withDeadline(keys.findChainById(lookup.index), readMs);
      const [current, ...older] = lookup.digests();
      const chain = await withDeadline(keys.findChainByDigest(current, ...older), readMs);
      if (chain && chain.keys[0].digest !== current) renewals?.keyFound(chain.keys[0], current);
      return chain;
    } catch (error) {
      throw unavailable(`key_store: ${String(error)}`, error);
    }
  }
}

function unavailable(detail: string, cause?: unknown): GatewayError {
  return new GatewayError("service_unavailable", "The key store cannot be reached; try again in a moment.", {
    detail,
    retryAfterSeconds: 1,
    cause,
  });
}
