// What is worked out once of a key and those that bound it, with all that many keys have in common kept once.

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

/** A key and those that bound it, as they were read or as they are kept. */
export type Chain = Pick<Principal, "keys" | "account">;

/** All that is worked out of a chain once, and is the same for all keys of which no more than the ids differ. */
interface ChainTerms {
  readonly own: KeyTerms;
  readonly makers: readonly ChainKey[];
  readonly account: Account;
  readonly scopes: ReadonlySet<Scope>;
  /** Those of the account alone; or, where it is told otherwise, all limits of this one chain. */
  readonly limits: AccountLimits | LimitSet;
  readonly reach: ModelAccess | undefined;
  readonly tools: ToolAccess | undefined;
  readonly priority: Priority;
  readonly tags: readonly string[] | undefined;
  readonly responseCache: ResponseCache | undefined;
  readonly party: Pick<Principal, "appId" | "person">;
  readonly expiresAt: number;
  readonly revokedAt: number;
  readonly allowedIps: readonly (readonly IpRange[])[] | undefined;
  readonly fault: string | undefined;
  readonly recent: RecentPrincipals;
}

/**
 * A key with its chain in memory, and its last use. Most of very many keys are seldom used: all that stays of one is this
 * object and its id. Its principal is made of that for a request, and is let go of once many others were made since.
 */
export class CachedChain implements KeyUse {
  readonly keyId: string;
  /** The last use that was told to the key's activity. */
  seconds = Number.NEGATIVE_INFINITY;
  isWaiting = false;
  readonly #limitId: string;
  readonly #terms: ChainTerms;
  #principal: Principal | undefined = undefined;
  #counted: CounterLocation | undefined = undefined;

  constructor(key: Pick<ChainKey, "id" | "limitId">, terms: ChainTerms) {
    this.keyId = key.id;
    // One text in place of two that are equal.
    this.#limitId = key.limitId === key.id ? key.id : key.limitId;
    this.#terms = terms;
  }

  /** That of the key itself; a token narrows its scopes. */
  get principal(): Principal {
    return this.#principal ?? this.#makePrincipal();
  }

  /** Unix seconds; the first of the chain to end, infinity for never. */
  get expiresAt(): number {
    return this.#terms.expiresAt;
  }

  get revokedAt(): number {
    return this.#terms.revokedAt;
  }

  /** The address lists of the chain that are not empty, where there are any: all of them must have the client's address. */
  get allowedIps(): readonly (readonly IpRange[])[] | undefined {
    return this.#terms.allowedIps;
  }

  /** Why the chain may not be used, whatever the time and the request. */
  get fault(): string | undefined {
    return this.#terms.fault;
  }

  /** A change of one of them may be one of what its principal may do. */
  dependsOn(ids: ReadonlySet<string>): boolean {
    const has = (id: string | null) => id !== null && ids.has(id);
    const isAbout = ({ personId, appId }: KeyTerms) => has(personId) || has(appId);
    const { own, makers, account } = this.#terms;
    return has(this.keyId) || isAbout(own) || has(account.id) || makers.some((key) => has(key.id) || isAbout(key));
  }

  letGo(): void {
    const counted = this.#principal?.limits.counted;
    if (counted?.lasts && counted !== this.#counted) this.#counted = counted;
    this.#principal = undefined;
  }

  #makePrincipal(): Principal {
    const { own, makers, account, scopes, limits, reach, tools, priority, tags, responseCache, party, recent } =
      this.#terms;
    const key = new KeptKey(this.keyId, this.#limitId, own);
    const keys: Principal["keys"] = makers.length === 0 ? [key] : [key, ...makers];
    const ofChain = "quota" in limits ? new ChainLimits(limits, keys) : limits;
    if (this.#counted) ofChain.counted = this.#counted;
    // Each member by its name: those that are spread would lie apart from the others.
    this.#principal = {
      account,
      keys,
      environment: own.environment,
      scopes,
      limits: ofChain,
      reach,
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

/** So many at least that are in use are not made again and again; what leaves a ring as short as that mostly is young garbage. */
const maxRecent = 1_024;

/** Chains of which the principal is kept, in a ring. */
class RecentPrincipals {
  #chains: CachedChain[] = [];
  #next = 0;

  /** One whose principal was made now. */
  add(chain: CachedChain): void {
    const before = this.#chains[this.#next];
    this.#chains[this.#next] = chain;
    this.#next = (this.#next + 1) % maxRecent;
    before?.letGo();
  }

  /** Whoever still knows one of the chains keeps no principal by it. */
  clear(): void {
    for (const chain of this.#chains) chain.letGo();
    this.#chains = [];
    this.#next = 0;
  }
}

/** Each full garbage collection walks through every object, list and text of 100,000 keys that is not shared. */
export class CachedChains {
  readonly #limitsOf: (chain: Chain) => LimitSet;
  readonly #priorityOf: (account: Account) => Priority;
  readonly #recent = new RecentPrincipals();
  readonly #accounts = new EqualParts<Account>();
  readonly #keyTerms = new EqualParts<KeyTerms>();
  readonly #scopeSets = new EqualParts<ReadonlySet<Scope>>();
  readonly #accountLimits = new EqualParts<AccountLimits>();
  readonly #reaches = new EqualParts<ModelAccess>();
  readonly #toolReaches = new EqualParts<ToolAccess>();
  readonly #tags = new EqualParts<readonly string[]>();
  readonly #terms = new EqualParts<ChainTerms>();

  /** `priorityOf`: the highest of an account. */
  constructor(
    limitsOf: (chain: Chain) => LimitSet,
    priorityOf: (account: Account) => Priority = () => defaultPriority,
  ) {
    this.#limitsOf = limitsOf;
    this.#priorityOf = priorityOf;
  }

  /** Frees what only former chains had. */
  clear(): void {
    this.#recent.clear();
    this.#accounts.clear();
    this.#keyTerms.clear();
    this.#scopeSets.clear();
    this.#accountLimits.clear();
    this.#reaches.clear();
    this.#toolReaches.clear();
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
    // Before it is shared: stores leave there what they found.
    const limitsText = JSON.stringify(ofAccount);
    const scopes = keys.map((key) => new Set(key.scopes)).reduce((common, more) => common.intersection(more));
    const allowedIps = keys
      .filter((key) => key.allowedIps.length > 0)
      // What cannot be read allows nobody.
      .map((key) => key.allowedIps.map(parseRange).filter((range) => range !== undefined));
    const most = this.#priorityOf(account);
    const terms: ChainTerms = {
      own,
      makers: kept,
      account,
      scopes: this.#scopeSets.shared([...scopes].join(" "), scopes),
      limits: ofAccount ? this.#accountLimits.shared(limitsText, ofAccount) : limits,
      reach: this.#reachOf(keys),
      tools: this.#toolsOf(keys, account),
      priority: lowestPriority([most, ...keys.map(({ priority }) => priority)]) ?? most,
      tags: this.#tagsOf(keys),
      responseCache: responseCacheOf(keys),
      party: actingParty(keys),
      expiresAt: Math.min(...keys.map((key) => key.expiresAt ?? Number.POSITIVE_INFINITY)),
      revokedAt: Math.min(...keys.map((key) => revocationOf(key))),
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

  /** What any of them does not leave, none of them has. */
  #reachOf(keys: readonly ChainKey[]): ModelAccess | undefined {
    const models = keys.flatMap((key) => (key.models ? [key.models] : []));
    const neverLeaves = keys.some((key) => key.neverLeaves);
    if (models.length === 0 && !neverLeaves) return undefined;
    const reach = { models, neverLeaves };
    return this.#reaches.shared(JSON.stringify(reach), reach);
  }

  /** Each list bounds the others. */
  #toolsOf(keys: readonly ChainKey[], account: Account): ToolAccess | undefined {
    const lists = [...keys, account].flatMap(({ tools }) => (tools ? [tools] : []));
    return lists.length === 0 ? undefined : this.#toolReaches.shared(JSON.stringify(lists), { lists });
  }

  /** What a key makes is counted under its tags as well: else it could make itself one that is not. */
  #tagsOf(keys: readonly ChainKey[]): readonly string[] | undefined {
    const tags = [...new Set(keys.flatMap((key) => key.tags))];
    return tags.length === 0 ? undefined : this.#tags.shared(tags.join(" "), tags);
  }
}

/** Off for all that hangs on a key that has it off; else as the nearest says that says anything. */
function responseCacheOf(keys: readonly ChainKey[]): ResponseCache | undefined {
  const said = keys.flatMap(({ responseCache }) => responseCache ?? []);
  return said.includes("off") ? "off" : said[0];
}

/** An app acts for itself; the command line tool, and a membership, for the person. */
function actingParty(keys: Principal["keys"]): Pick<Principal, "appId" | "person"> {
  const [{ kind, appId, personId }] = keys;
  if (kind === "key") return { appId: null };
  if (kind === "grant" && appId !== commandLineAppId) return { appId };
  const role = keys.find((one) => one.kind === "membership")?.role ?? "member";
  return { appId: null, person: { id: personId ?? "", role, isOperator: false, sessionId: null } };
}

/** When it is revoked, in Unix seconds; what is revoked for good is so at any time. */
function revocationOf({ revoked, revokedAt }: ChainKey): number {
  return revoked ? Number.NEGATIVE_INFINITY : (revokedAt ?? Number.POSITIVE_INFINITY);
}

function faultOf({ keys, account }: Chain): string | undefined {
  if (account.status !== "active") return "account_suspended";
  const [{ environment }] = keys;
  const mixed = keys.some((key) => key.environment !== environment || key.accountId !== account.id);
  return mixed ? "chain_inconsistent" : undefined;
}
