// Keeps key chains in memory for as long as the store has not changed, so that a warm credential costs no read.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Account } from "../../domain/account.ts";
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
  /** What a request of this chain counts against; asked once for each entry. */
  limitsOf(chain: Chain): LimitSet;
  /** The highest priority that requests of an account may have; left out: the usual one. */
  priorityOf?(account: Account): Priority;
  /** Told of a key that was found by its digest under an older secret, with that under the one in use. */
  renewals?: { keyFound(key: Pick<ApiKeyRecord, "id" | "digest">, digest: string): void } | undefined;
  /** Reads anew what `limitsOf` depends on, after a change by whichever process. */
  reread?(): Promise<void>;
  /** How long entries hold while the store cannot be asked. */
  graceSeconds?: number;
  pollMs?: number;
  /** Keys. */
  capacity?: number;
}

/** `digests`: as the store may have it, worked out only where the store is asked. */
type Lookup = { by: "key"; key: string; index: string; digests: () => Digests } | { by: "id"; index: string };

/** Under the secret in use, and under those that it replaces. */
export type Digests = readonly [current: string, ...older: string[]];

const defaultGraceSeconds = 300;
const defaultCapacity = 100_000;
/** Keys whose tokens are in use: as many as there are tokens remembered. */
const maxByToken = 50_000;
/** Reads at a time, and requests that wait for their turn: a flood of made-up keys ends in 503, not in the store. */
const maxReads = 32;
const maxWaiting = 2_000;
const readMs = 5_000;
/** A read that was overtaken by a change so often says that the store changes faster than it can be read. */
const maxAttempts = 10;

export class CredentialCache {
  readonly #options: CredentialCacheOptions;
  readonly #watcher: RevisionWatcher;
  readonly #byKey: SecretMap<CachedChain>;
  readonly #byId: LruMap<CachedChain>;
  /** By `memoryIndex` of keys, and by ids: they cannot collide, as only ids have an underscore. */
  readonly #loading = new Map<string, Promise<CachedChain | undefined>>();
  readonly #turns = new Turns(maxReads, maxWaiting);
  readonly #graceMs: number;
  readonly #chains: CachedChains;
  /** Raised by every change: a read that began under another generation is neither used nor kept. */
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

  /** Watches the store for changes of other processes. */
  start(): void {
    this.#watcher.start();
  }

  close(): void {
    this.#watcher.close();
  }

  /** Another process says that something changed, and perhaps what. */
  hint(ids?: readonly string[]): Promise<void> {
    return this.#watcher.hint(ids);
  }

  /** Whether the store answers now, which takes a second at most; and if not, whether there is anything that still holds. */
  async reach(): Promise<"ok" | "away" | "gone"> {
    await this.#watcher.ask();
    return this.standing;
  }

  /** The same as of the last look, a second ago or so, without asking. */
  get standing(): "ok" | "away" | "gone" {
    if (!this.#watcher.isAway) return "ok";
    return this.#watcher.unconfirmedMs() > this.#graceMs || this.#isEmpty ? "gone" : "away";
  }

  /** Nothing that was read up to now holds any more, reads in flight included. */
  invalidate(): void {
    this.#generation++;
    this.#byKey.clear();
    this.#byId.clear();
    this.#chains.clear();
  }

  /** What `limitsOf` tells is another. Where the store cannot be asked, what is known of the keys themselves is used on. */
  limitsChanged(): void {
    if (!this.#watcher.isAway) {
      this.invalidate();
      return;
    }
    this.#generation++;
    this.#chains.clear();
    const renewed = ({ principal: { keys, account } }: CachedChain) => this.#chains.of({ keys, account });
    this.#byKey.replaceEach(renewed);
    this.#byId.replaceEach(renewed);
  }

  get #isEmpty(): boolean {
    return this.#byKey.size + this.#byId.size === 0;
  }

  #changed(ids?: readonly string[]): void {
    if (ids) this.#forget(new Set(ids));
    else this.invalidate();
  }

  /** The others hold on: where the store cannot be asked, nobody could read them again. */
  #forget(ids: ReadonlySet<string>): void {
    this.#generation++;
    const isAbout = (entry: CachedChain) => entry.dependsOn(ids);
    this.#byKey.forgetWhere(isAbout);
    this.#byId.forgetWhere(isAbout);
  }

  /** Credentials in memory, and the milliseconds since the store last said that they hold. */
  get figures(): { cached: number; unconfirmedMs: number } {
    return { cached: this.#byKey.size + this.#byId.size, unconfirmedMs: this.#watcher.unconfirmedMs() };
  }

  /** What is known of a key, as far as that holds without asking the store. */
  warm(key: string): CachedChain | undefined {
    const unconfirmedMs = this.#watcher.unconfirmedMs();
    if (this.#watcher.freshness(unconfirmedMs) === "overdue" || unconfirmedMs > this.#graceMs) return undefined;
    return this.#byKey.get(key);
  }

  /**
   * `index`: the key's `memoryIndex`. A promise only where the store has to be asked; rejects with `service_unavailable`
   * where that fails.
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
    // Covers a store that is away, for as long as the grace lasts, as well as a fresh one.
    if (this.#watcher.unconfirmedMs() > this.#graceMs) return undefined;
    return lookup.by === "key" ? this.#byKey.get(lookup.key) : this.#byId.get(lookup.index);
  }

  #keep(lookup: Lookup, entry: CachedChain): void {
    if (lookup.by === "key") this.#byKey.set(lookup.key, entry);
    else this.#byId.set(lookup.index, entry);
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

  /** Unknown credentials are not remembered: made-up ones must not push real ones out. */
  async #read(lookup: Lookup): Promise<CachedChain | undefined> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const generation = this.#generation;
      const chain = await this.#ask(lookup);
      if (generation !== this.#generation) continue;
      const entry = chain && this.#chains.of(chain);
      if (entry) this.#keep(lookup, entry);
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
