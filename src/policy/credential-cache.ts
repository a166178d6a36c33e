// Keeps key chains in memory for as long as the store has not changed, so that a warm credential costs no read.
import { commandLineAppId } from "../domain/app.ts";
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import { type IpRange, parseRange } from "../domain/ip-range.ts";
import type { LimitSet } from "../domain/limits.ts";
import type { Log } from "../domain/log.ts";
import type { ApiKeyRecord, KeyChain, KeyStore, Principal } from "../domain/principal.ts";
import { withDeadline } from "./deadline.ts";
import { LruMap } from "./lru-map.ts";
import { RevisionWatcher } from "./revision-watcher.ts";
import { Turns } from "./turns.ts";

export interface CredentialCacheOptions {
  keys: KeyStore;
  clock: Clock;
  log: Log;
  /** What a request of this chain counts against; asked once for each entry. */
  limitsOf(chain: KeyChain): LimitSet;
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

/** A key chain with all that can be worked out of it once. */
export interface CachedChain {
  chain: KeyChain;
  /** Of the key itself; a token narrows its scopes. */
  principal: Principal;
  /** Unix seconds; the first of the chain to end, infinity for never. */
  expiresAt: number;
  revokedAt: number;
  /** The address lists of the chain that are not empty: all of them must have the client's address. */
  allowedIps: readonly (readonly IpRange[])[];
  /** Why the chain may not be used, whatever the time and the request. */
  fault: string | undefined;
  /** Unix seconds of the last use that was told to the key's activity. */
  usedAt: number;
}

/** `digests`: as the store may have it, worked out only where the store is asked. */
type Lookup = { by: "key"; index: string; digests: () => Digests } | { by: "id"; index: string };

/** Under the secret in use, and under those that it replaces. */
export type Digests = readonly [current: string, ...older: string[]];

const defaultGraceSeconds = 300;
const defaultCapacity = 100_000;
/** Keys whose tokens are in use: as many as there are tokens remembered. */
const mostByToken = 50_000;
/** Reads at a time, and requests that wait for their turn: a flood of made-up keys ends in 503, not in the store. */
const maxReads = 32;
const maxWaiting = 2_000;
const readMs = 5_000;
/** A read that was overtaken by a change so often says that the store changes faster than it can be read. */
const maxAttempts = 10;

export class CredentialCache {
  readonly #options: CredentialCacheOptions;
  readonly #watcher: RevisionWatcher;
  /** By `memoryIndex` of the key. */
  readonly #byKey: LruMap<CachedChain>;
  readonly #byId: LruMap<CachedChain>;
  /** By both: they cannot collide, as only ids have an underscore. */
  readonly #loading = new Map<string, Promise<CachedChain | undefined>>();
  readonly #turns = new Turns(maxReads, maxWaiting);
  readonly #graceMs: number;
  /** Raised by every change: a read that began under another generation is neither used nor kept. */
  #generation = 0;

  constructor(options: CredentialCacheOptions) {
    this.#options = options;
    const capacity = options.capacity ?? defaultCapacity;
    this.#byKey = new LruMap(capacity);
    this.#byId = new LruMap(Math.min(capacity, mostByToken));
    this.#graceMs = (options.graceSeconds ?? defaultGraceSeconds) * 1000;
    const { keys, clock, log, pollMs, reread } = options;
    this.#watcher = new RevisionWatcher({
      ...{ keys, clock, log, onChange: () => this.invalidate() },
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

  /** Another process says that something changed. */
  hint(): Promise<void> {
    return this.#watcher.hint();
  }

  /** Whether the store answers now, which takes a second at most; and if not, whether what is in memory still holds. */
  async reach(): Promise<"ok" | "away" | "gone"> {
    await this.#watcher.ask();
    return this.standing;
  }

  /** The same as of the last look, a second ago or so, without asking. */
  get standing(): "ok" | "away" | "gone" {
    if (!this.#watcher.isAway) return "ok";
    return this.#watcher.unconfirmedMs() > this.#graceMs ? "gone" : "away";
  }

  /** Nothing that was read up to now holds any more, reads in flight included. */
  invalidate(): void {
    this.#generation++;
    this.#byKey.clear();
    this.#byId.clear();
  }

  /** Credentials in memory, and the milliseconds since the store last said that they hold. */
  get figures(): { cached: number; unconfirmedMs: number } {
    return { cached: this.#byKey.size + this.#byId.size, unconfirmedMs: this.#watcher.unconfirmedMs() };
  }

  /** What is known of the key with this `memoryIndex`, as far as that holds without asking the store. */
  warm(index: string): CachedChain | undefined {
    return this.#watcher.freshness() === "overdue" ? undefined : this.#cached(this.#byKey, index);
  }

  /** A promise only where the store has to be asked; rejects with `service_unavailable` where that fails. */
  byKey(index: string, digests: () => Digests): CachedChain | Promise<CachedChain | undefined> {
    return this.#get({ by: "key", index, digests });
  }

  byId(id: string): CachedChain | Promise<CachedChain | undefined> {
    return this.#get({ by: "id", index: id });
  }

  #get(lookup: Lookup): CachedChain | Promise<CachedChain | undefined> {
    const entries = this.#entriesOf(lookup);
    const { index } = lookup;
    if (this.#watcher.freshness() !== "overdue") return this.#cached(entries, index) ?? this.#load(lookup);
    return this.#watcher.ask().then(() => this.#cached(entries, index) ?? this.#load(lookup));
  }

  #cached(entries: LruMap<CachedChain>, index: string): CachedChain | undefined {
    // Covers a store that is away, for as long as the grace lasts, as well as a fresh one.
    return this.#watcher.unconfirmedMs() > this.#graceMs ? undefined : entries.get(index);
  }

  #entriesOf({ by }: Lookup): LruMap<CachedChain> {
    return by === "key" ? this.#byKey : this.#byId;
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
      const entry = chain && this.#compose(chain);
      if (entry) this.#entriesOf(lookup).set(lookup.index, entry);
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

  #compose(chain: KeyChain): CachedChain {
    const { keys, account } = chain;
    const scopes = keys.map(({ scopes }) => new Set(scopes)).reduce((common, more) => common.intersection(more));
    return {
      chain,
      principal: {
        account,
        keys,
        environment: keys[0].environment,
        scopes,
        ...actingParty(keys),
        limits: this.#options.limitsOf(chain),
      },
      expiresAt: Math.min(...keys.map((key) => key.expiresAt ?? Number.POSITIVE_INFINITY)),
      revokedAt: Math.min(...keys.map((key) => revocationOf(key))),
      allowedIps: keys
        .filter((key) => key.allowedIps.length > 0)
        // What cannot be read allows nobody.
        .map((key) => key.allowedIps.map(parseRange).filter((range) => range !== undefined)),
      fault: faultOf(chain),
      usedAt: Number.NEGATIVE_INFINITY,
    };
  }
}

/** An app acts for itself; the command line tool, and a membership, for the person. */
function actingParty(keys: KeyChain["keys"]): Pick<Principal, "appId" | "person"> {
  const [{ kind, appId, personId }] = keys;
  if (kind === "key") return { appId: null };
  if (kind === "grant" && appId !== commandLineAppId) return { appId };
  const role = keys.find((one) => one.kind === "membership")?.role ?? "member";
  return { appId: null, person: { id: personId ?? "", role, isOperator: false, sessionId: null } };
}

/** When it is revoked, in Unix seconds; what is revoked for good is so at any time. */
function revocationOf({ revoked, revokedAt }: ApiKeyRecord): number {
  return revoked ? Number.NEGATIVE_INFINITY : (revokedAt ?? Number.POSITIVE_INFINITY);
}

function faultOf({ keys, account }: KeyChain): string | undefined {
  if (account.status !== "active") return "account_suspended";
  const [{ environment }] = keys;
  const mixed = keys.some((key) => key.environment !== environment || key.accountId !== account.id);
  return mixed ? "chain_inconsistent" : undefined;
}

function unavailable(detail: string, cause?: unknown): GatewayError {
  return new GatewayError("service_unavailable", "The key store cannot be reached; try again in a moment.", {
    detail,
    retryAfterSeconds: 1,
    cause,
  });
}
