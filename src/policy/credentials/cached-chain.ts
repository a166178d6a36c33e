// Caches keys with the keys that made them. Data that many keys have in common is stored once.

import type { Suspension } from "../../base/invalid-api-key.ts";
import { type IpRange, parseRange } from "../../base/text/ip-range.ts";
import type { Account } from "../../domain/account.ts";
import type { CounterLocation, LimitSet } from "../../domain/limits/limits.ts";
import type { ResponseCache } from "../../domain/models/policies/cache.ts";
import { defaultPriority, lowestPriority, type Priority } from "../../domain/models/policies/priority.ts";
import { commandLineAppId } from "../../domain/people/app.ts";
import type { ChainKey, ModelAccess, Principal } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import type { ToolAccess } from "../../domain/tools/tool-access.ts";
import { type AccountLimits, ChainLimits } from "../limits-of.ts";
import { EqualParts } from "./equal-parts.ts";
import { KeptKey, type KeyTerms, termsOf } from "./kept-key.ts";
import type { KeyUse } from "./key-activity.ts";

/** A key, its makers and its account, as read from the store or from the cache. */
export type Chain = Pick<Principal, "keys" | "account">;

/** The part of a chain that is equal for all keys that differ only in their ids. */
interface ChainTerms {
  readonly own: KeyTerms;
  readonly makers: readonly ChainKey[];
  readonly account: Account;
  readonly scopes: ReadonlySet<Scope>;
  /** Only the account's limits if the chain has `ChainLimits`; otherwise all limits of the chain. */
  readonly limits: AccountLimits | LimitSet;
  readonly modelAccess: ModelAccess | undefined;
  readonly tools: ToolAccess | undefined;
  readonly priority: Priority;
  readonly tags: readonly string[] | undefined;
  readonly responseCache: ResponseCache | undefined;
  readonly party: Pick<Principal, "appId" | "person">;
  readonly expiresAt: number;
  readonly revokedAt: number;
  readonly raisesEndAt: number;
  readonly allowedIps: readonly (readonly IpRange[])[] | undefined;
  readonly fault: string | undefined;
  readonly recent: RecentPrincipals;
}

/**
 * A cached key with its chain and its last use. Most keys are seldom used, so only this object and the key's id stay in
 * memory. The principal is built for a request, and dropped after many others were built.
 */
export class CachedChain implements KeyUse {
  readonly keyId: string;
  /** The last use that was reported to `KeyActivity`, in Unix seconds. */
  seconds = Number.NEGATIVE_INFINITY;
  isWaiting = false;
  readonly #limitId: string;
  #terms: ChainTerms;
  #principal: Principal | undefined = undefined;
  #counted: CounterLocation | undefined = undefined;

  constructor(key: Pick<ChainKey, "id" | "limitId">, terms: ChainTerms) {
    this.keyId = key.id;
    // Two equal ids share one string object, which saves memory.
    this.#limitId = key.limitId === key.id ? key.id : key.limitId;
    this.#terms = terms;
  }

  /** The principal of the key itself. An access token may narrow its scopes. */
  get principal(): Principal {
    return this.#principal ?? this.#makePrincipal();
  }

  /** The earliest expiry in the chain in Unix seconds; infinity if nothing expires. */
  get expiresAt(): number {
    return this.#terms.expiresAt;
  }

  get revokedAt(): number {
    return this.#terms.revokedAt;
  }

  /** The earliest end of a raised limit of the account in Unix seconds; infinity without any. */
  get raisesEndAt(): number {
    return this.#terms.raisesEndAt;
  }

  /** The non-empty address lists of the chain, if there are any. The client's address must be in all of them. */
  get allowedIps(): readonly (readonly IpRange[])[] | undefined {
    return this.#terms.allowedIps;
  }

  /** Reason why the chain may not be used at any time; undefined if there is none. */
  get fault(): string | undefined {
    return this.#terms.fault;
  }

  /** Reports whether the chain depends on one of these ids. A change of these ids may change its principal. */
  dependsOn(ids: ReadonlySet<string>): boolean {
    const has = (id: string | null) => id !== null && ids.has(id);
    const isAbout = ({ personId, appId }: KeyTerms) => has(personId) || has(appId);
    const { own, makers, account } = this.#terms;
    const isOfAccount = has(account.id) || has(account.organizationId ?? null);
    return has(this.keyId) || isAbout(own) || isOfAccount || makers.some((key) => has(key.id) || isAbout(key));
  }

  /** Takes over the terms of a newer chain of the same key. */
  renew(newer: CachedChain): void {
    this.#terms = newer.#terms;
    this.#principal = undefined;
    this.#counted = undefined;
  }

  letGo(): void {
    const counted = this.#principal?.limits.counted;
    if (counted?.lasts && counted !== this.#counted) this.#counted = counted;
    this.#principal = undefined;
  }

  #makePrincipal(): Principal {
    const { own, makers, account, scopes, limits, modelAccess, tools, priority, tags, responseCache, party, recent } =
      this.#terms;
    const key = new KeptKey(this.keyId, this.#limitId, own);
    const keys: Principal["keys"] = makers.length === 0 ? [key] : [key, ...makers];
    const ofChain = "quota" in limits ? new ChainLimits(limits, keys) : limits;
    if (this.#counted) ofChain.counted = this.#counted;
    // Every member is written out, because the engine would store members from a spread apart from the others.
    this.#principal = {
      account,
      keys,
      environment: own.environment,
      scopes,
      limits: ofChain,
      modelAccess,
      tools,
      priority,
      tags,
      responseCache,
      appId: party.appId,
      person: party.person,
    };
    recent.add(this);
    return this.#principal;
  }
}

/**
 * Maximum number of principals in memory. Up to this number of active keys, no principal must be built again. The ring
 * is short, so that dropped principals are mostly young and cheap for the garbage collector.
 */
const maxRecent = 1_024;

/** A ring of the chains that have a principal in memory. */
class RecentPrincipals {
  #chains: CachedChain[] = [];
  #next = 0;

  /** Adds a chain whose principal was just built. */
  add(chain: CachedChain): void {
    const before = this.#chains[this.#next];
    this.#chains[this.#next] = chain;
    this.#next = (this.#next + 1) % maxRecent;
    before?.letGo();
  }

  /** Drops all principals, also for callers that still refer to a chain. */
  clear(): void {
    for (const chain of this.#chains) chain.letGo();
    this.#chains = [];
    this.#next = 0;
  }
}

/**
 * Makes cached chains that share equal parts, because each full garbage collection visits every object, list and text
 * of 100,000 keys that is not shared.
 */
export class CachedChains {
  readonly #limitsOf: (chain: Chain) => LimitSet;
  readonly #priorityOf: (account: Account) => Priority;
  readonly #recent = new RecentPrincipals();
  readonly #accounts = new EqualParts<Account>();
  readonly #keyTerms = new EqualParts<KeyTerms>();
  readonly #scopeSets = new EqualParts<ReadonlySet<Scope>>();
  readonly #accountLimits = new EqualParts<AccountLimits>();
  readonly #modelAccesses = new EqualParts<ModelAccess>();
  readonly #toolAccesses = new EqualParts<ToolAccess>();
  readonly #tags = new EqualParts<readonly string[]>();
  readonly #terms = new EqualParts<ChainTerms>();

  /** `priorityOf` returns the highest priority of an account. */
  constructor(
    limitsOf: (chain: Chain) => LimitSet,
    priorityOf: (account: Account) => Priority = () => defaultPriority,
  ) {
    this.#limitsOf = limitsOf;
    this.#priorityOf = priorityOf;
  }

  /** Clears all shared parts. Unused parts are freed. */
  clear(): void {
    this.#recent.clear();
    this.#accounts.clear();
    this.#keyTerms.clear();
    this.#scopeSets.clear();
    this.#accountLimits.clear();
    this.#modelAccesses.clear();
    this.#toolAccesses.clear();
    this.#tags.clear();
    this.#terms.clear();
  }

  of(chain: Chain): CachedChain {
    const [first, ...makers] = chain.keys;
    const own = this.#termsOf(first);
    const kept = makers.map((key) => new KeptKey(key.id, key.limitId, this.#termsOf(key)));
    const account = this.#accounts.shared(JSON.stringify(chain.account), chain.account);
    const keys: Principal["keys"] = [new KeptKey(first.id, first.limitId, own), ...kept];
    const limits = this.#limitsOf({ keys, account });
    const ofAccount = limits instanceof ChainLimits ? limits.ofAccount : undefined;
    // Serialize the limits before they are shared, because stores attach data to shared limits.
    const limitsText = JSON.stringify(ofAccount);
    const scopes = keys.map((key) => new Set(key.scopes)).reduce((common, more) => common.intersection(more));
    const allowedIps = keys
      .filter((key) => key.allowedIps.length > 0)
      // A range that cannot be read allows no address.
      .map((key) => key.allowedIps.map(parseRange).filter((range) => range !== undefined));
    const most = this.#priorityOf(account);
    const terms: ChainTerms = {
      own,
      makers: kept,
      account,
      scopes: this.#scopeSets.shared([...scopes].join(" "), scopes),
      limits: ofAccount ? this.#accountLimits.shared(limitsText, ofAccount) : limits,
      modelAccess: this.#modelAccessOf(keys),
      tools: this.#toolsOf(keys, account),
      priority: lowestPriority([most, ...keys.map(({ priority }) => priority)]) ?? most,
      tags: this.#tagsOf(keys),
      responseCache: responseCacheOf(keys),
      party: actingParty(keys),
      expiresAt: Math.min(...keys.map((key) => key.expiresAt ?? Number.POSITIVE_INFINITY)),
      revokedAt: Math.min(...keys.map((key) => revocationOf(key))),
      raisesEndAt: Math.min(...(account.raises ?? []).map(({ until }) => until)),
      allowedIps: allowedIps.length > 0 ? allowedIps : undefined,
      fault: faultOf(chain),
      recent: this.#recent,
    };
    const bounds = makers.map((key) => [key.id, key.limitId, termsOf(key)]);
    const text = JSON.stringify([termsOf(first), bounds, account, limitsText, most]);
    return new CachedChain(first, ofAccount ? this.#terms.shared(text, terms) : terms);
  }

  #termsOf(key: ChainKey): KeyTerms {
    const terms = termsOf(key);
    return this.#keyTerms.shared(JSON.stringify(terms), terms);
  }

  /** Returns the model access that all keys of the chain allow. */
  #modelAccessOf(keys: readonly ChainKey[]): ModelAccess | undefined {
    const models = keys.flatMap((key) => (key.models ? [key.models] : []));
    const neverLeaves = keys.some((key) => key.neverLeaves);
    if (models.length === 0 && !neverLeaves) return undefined;
    const modelAccess = { models, neverLeaves };
    return this.#modelAccesses.shared(JSON.stringify(modelAccess), modelAccess);
  }

  /** Returns the tool access. A tool must be allowed by each of the lists. */
  #toolsOf(keys: readonly ChainKey[], account: Account): ToolAccess | undefined {
    const lists = [...keys, account].flatMap(({ tools }) => (tools ? [tools] : []));
    return lists.length === 0 ? undefined : this.#toolAccesses.shared(JSON.stringify(lists), { lists });
  }

  /**
   * Returns the tags of all keys. Requests of a key that another key made also count under the maker's tags, so that
   * a key cannot escape its tags.
   */
  #tagsOf(keys: readonly ChainKey[]): readonly string[] | undefined {
    const tags = [...new Set(keys.flatMap((key) => key.tags))];
    return tags.length === 0 ? undefined : this.#tags.shared(tags.join(" "), tags);
  }
}

/**
 * Returns the cache setting: off if any key of the chain turns the cache off, else the setting of the nearest key that
 * has one.
 */
function responseCacheOf(keys: readonly ChainKey[]): ResponseCache | undefined {
  const said = keys.flatMap(({ responseCache }) => responseCache ?? []);
  return said.includes("off") ? "off" : said[0];
}

/** Returns the acting party: an app acts for itself; the command line tool and a membership act for the person. */
function actingParty(keys: Principal["keys"]): Pick<Principal, "appId" | "person"> {
  const [{ kind, appId, personId }] = keys;
  if (kind === "key") return { appId: null };
  if (kind === "grant" && appId !== commandLineAppId) return { appId };
  const role = keys.find((one) => one.kind === "membership")?.role ?? "member";
  return { appId: null, person: { id: personId ?? "", role, isOperator: false, sessionId: null } };
}

/** Returns the time of the revocation in Unix seconds. A final revocation applies at any time. */
function revocationOf({ revoked, revokedAt }: ChainKey): number {
  return revoked ? Number.NEGATIVE_INFINITY : (revokedAt ?? Number.POSITIVE_INFINITY);
}

function suspensionOf({ suspendedBy }: ChainKey): Suspension {
  return suspendedBy === "person" || suspendedBy === "app" ? `${suspendedBy}_suspended` : "key_suspended";
}

function faultOf({ keys, account }: Chain): string | undefined {
  if (account.status !== "active") return "account_suspended";
  const suspended = keys.find((key) => key.suspendedBy !== null);
  if (suspended) return suspensionOf(suspended);
  const [{ environment }] = keys;
  const mixed = keys.some((key) => key.environment !== environment || key.accountId !== account.id);
  return mixed ? "chain_inconsistent" : undefined;
}
