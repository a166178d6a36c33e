// What is worked out once of a key and those that bound it, with all that many keys have in common kept once.

import { type IpRange, parseRange } from "../../base/text/ip-range.ts";
import type { Account } from "../../domain/account.ts";
import type { LimitSet } from "../../domain/limits/limits.ts";
import { commandLineAppId } from "../../domain/people/app.ts";
import type { ChainKey, ModelReach, Principal } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import { type AccountLimits, ChainLimits } from "../limits-of.ts";
import { EqualParts } from "./equal-parts.ts";
import { KeptKey, type KeyTerms, termsOf } from "./kept-key.ts";
import type { KeyUse } from "./key-activity.ts";

/** A key and those that bound it, as they were read or as they are kept. */
export type Chain = Pick<Principal, "keys" | "account">;

/** A key chain with all that can be worked out of it once. */
export interface CachedChain {
  /** The principal of the key itself; a token narrows its scopes. */
  principal: Principal;
  /** Unix seconds; the first of the chain to end, infinity for never. */
  expiresAt: number;
  revokedAt: number;
  /** The address lists of the chain that are not empty, where there are any: all of them must have the client's address. */
  allowedIps: readonly (readonly IpRange[])[] | undefined;
  /** Why the chain may not be used, whatever the time and the request. */
  fault: string | undefined;
  /** The last use that was told to the key's activity. */
  use: KeyUse | undefined;
}

/** Each full garbage collection walks through every object, list and text of 100,000 keys that is not shared. */
export class CachedChains {
  readonly #limitsOf: (chain: Chain) => LimitSet;
  readonly #accounts = new EqualParts<Account>();
  readonly #terms = new EqualParts<KeyTerms>();
  readonly #scopeSets = new EqualParts<ReadonlySet<Scope>>();
  readonly #accountLimits = new EqualParts<AccountLimits>();
  readonly #reaches = new EqualParts<ModelReach>();
  readonly #tags = new EqualParts<readonly string[]>();

  constructor(limitsOf: (chain: Chain) => LimitSet) {
    this.#limitsOf = limitsOf;
  }

  /** Frees what only former chains had. */
  clear(): void {
    this.#accounts.clear();
    this.#terms.clear();
    this.#scopeSets.clear();
    this.#accountLimits.clear();
    this.#reaches.clear();
    this.#tags.clear();
  }

  of(chain: Chain): CachedChain {
    const [first, ...makers] = chain.keys;
    const keys: Principal["keys"] = [this.#kept(first), ...makers.map((key) => this.#kept(key))];
    const scopes = keys.map(({ scopes }) => new Set(scopes)).reduce((common, more) => common.intersection(more));
    const account = this.#accounts.shared(JSON.stringify(chain.account), chain.account);
    const allowedIps = keys
      .filter((key) => key.allowedIps.length > 0)
      // What cannot be read allows nobody.
      .map((key) => key.allowedIps.map(parseRange).filter((range) => range !== undefined));
    const { appId, person } = actingParty(keys);
    // Each member by its name: those that are spread would lie apart from the others.
    return {
      principal: {
        account,
        keys,
        environment: keys[0].environment,
        scopes: this.#scopeSets.shared([...scopes].join(" "), scopes),
        limits: this.#sharing(this.#limitsOf({ keys, account })),
        reach: this.#reachOf(keys),
        tags: this.#tagsOf(keys),
        appId,
        person,
      },
      expiresAt: Math.min(...keys.map((key) => key.expiresAt ?? Number.POSITIVE_INFINITY)),
      revokedAt: Math.min(...keys.map((key) => revocationOf(key))),
      allowedIps: allowedIps.length > 0 ? allowedIps : undefined,
      fault: faultOf(chain),
      use: undefined,
    };
  }

  #kept(key: ChainKey): KeptKey {
    const terms = termsOf(key);
    return new KeptKey(key.id, key.limitId, this.#terms.shared(JSON.stringify(terms), terms));
  }

  /** What any of them does not leave, none of them has. */
  #reachOf(keys: readonly ChainKey[]): ModelReach | undefined {
    const models = keys.flatMap((key) => (key.models ? [key.models] : []));
    const neverLeaves = keys.some((key) => key.neverLeaves);
    if (models.length === 0 && !neverLeaves) return undefined;
    const reach = { models, neverLeaves };
    return this.#reaches.shared(JSON.stringify(reach), reach);
  }

  /** What a key makes is counted under its tags as well: else it could make itself one that is not. */
  #tagsOf(keys: readonly ChainKey[]): readonly string[] | undefined {
    const tags = [...new Set(keys.flatMap((key) => key.tags))];
    return tags.length === 0 ? undefined : this.#tags.shared(tags.join(" "), tags);
  }

  /** With the account's limits as the same objects for all of its keys. */
  #sharing(limits: LimitSet): LimitSet {
    if (!(limits instanceof ChainLimits)) return limits;
    const { ofAccount } = limits;
    return limits.sharing(this.#accountLimits.shared(JSON.stringify(ofAccount), ofAccount));
  }
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
