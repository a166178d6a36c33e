// Turns the credentials of a request into a principal. All refusals have the same message, which tells an attacker
// nothing.

import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { invalidApiKey, suspensionReason } from "../../base/invalid-api-key.ts";
import { type IpRange, rangesContain } from "../../base/text/ip-range.ts";
import { type Environment, environmentOf, parseApiKey } from "../../domain/api-key.ts";
import { type Keys, keyRing } from "../../domain/key-ring.ts";
import { keyStatus, type Principal, type SignedInPerson } from "../../domain/principal.ts";
import type { RefusalLog } from "../records/refusal-log.ts";
import type { AccessTokens, Verification, VerifiedToken } from "./access-tokens.ts";
import type { CachedChain } from "./cached-chain.ts";
import { CredentialCache, type CredentialCacheOptions, type Digests } from "./credential-cache.ts";
import type { KeyActivity } from "./key-activity.ts";
import { keyDigest, memoryIndex } from "./key-digest.ts";
import { apiResource, coversResource } from "./resources.ts";
import type { UnknownCredentials } from "./unknown-credentials.ts";

/** The credentials of a request, and where they come from. */
export interface PresentedCredentials {
  /** Value of the header `Authorization`. */
  authorization: string | null;
  /** Value of the header `X-API-Key` or `api-key`. */
  apiKey: string | null;
  clientAddress: string;
  requestId: string;
  /** Path of the resource that is requested. Default: the API. */
  resource?: string;
  /** Returns why the request does not count as local; undefined if it does. Called only for development keys. */
  whyNotLocal(): string | undefined;
  /** True for a check of an open connection, which does not count as a use of the key. Default: false. */
  isCheck?: boolean;
}

export interface AuthenticatorOptions extends CredentialCacheOptions {
  pepper: Keys;
  /** Development keys work only in development mode, and only for local requests. */
  mode: "development" | "production";
  tokens: Pick<AccessTokens, "verify" | "isSigner">;
  activity: Pick<KeyActivity, "used">;
  refusals: Pick<RefusalLog, "record">;
  unknown: Pick<UnknownCredentials, "find">;
  clock: Clock;
}

/** Maximum length of a credential that is looked up in the cache without further checks. No key is longer. */
const maxKeyLength = 64;
/** Milliseconds after a failed write of a revocation until the next attempt. */
const endAgainMs = 1_000;

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  #ending: Promise<void> | undefined;
  #endAgainMs = Number.NEGATIVE_INFINITY;
  readonly #cache: CredentialCache;
  /**
   * Principals narrowed by access tokens. The outer map key is the key's principal: dropping it drops all principals
   * derived from it. If tokens were the outer keys, a token cached for hours would keep outdated principals in memory.
   */
  readonly #narrowed = new WeakMap<Principal, WeakMap<VerifiedToken, Principal>>();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#cache = new CredentialCache(options);
  }

  /** Starts to watch the store for changes by other processes. */
  start(): void {
    this.#cache.start();
  }

  close(): void {
    this.#cache.close();
  }

  /** Number of cached credentials, and milliseconds since the store last confirmed them. */
  get figures(): { cached: number; unconfirmedMs: number } {
    return this.#cache.figures;
  }

  /**
   * Called when another process reports a change, perhaps with the ids of keys, accounts, people and apps. When the
   * promise resolves, the change is effective here. Never rejects.
   */
  hint(ids?: readonly string[]): Promise<void> {
    return this.#cache.hint(ids);
  }

  /**
   * Checks within a second whether the store answers. `away`: the store does not answer, and cached credentials are
   * still accepted. `gone`: the store does not answer, and no cached credential is accepted any more.
   */
  checkStore(): Promise<"ok" | "away" | "gone"> {
    return this.#cache.checkStore();
  }

  /** The result of the last check, at most about a second old. */
  get storeStatus(): "ok" | "away" | "gone" {
    return this.#cache.storeStatus;
  }

  /** Call after this process changed a key, account, tier or limit: the change is effective immediately. */
  invalidate(): void {
    this.#cache.invalidate();
  }

  /** Call after any process changed something that limits depend on, such as tiers. */
  limitsChanged(): void {
    this.#cache.limitsChanged();
  }

  /**
   * Returns the principal; a promise only if the store must be asked. Throws, or rejects with, `invalid_api_key`, whose
   * reason is in `detail` for the log only, or `token_expired`. If the store must be asked: `service_unavailable` if it
   * does not answer, and `rate_limit_exceeded` if the address presented too many unknown keys.
   */
  authenticate(presented: PresentedCredentials): Principal | Promise<Principal> {
    return this.#warm(presented) ?? this.#check(presented);
  }

  /** Accepts a cached key. Only well-formed keys are cached, so the form is not checked again. */
  #warm(presented: PresentedCredentials): Principal | Promise<Principal> | undefined {
    const { authorization, apiKey } = presented;
    let key = apiKey;
    if (authorization !== null) key = !apiKey && authorization.startsWith("Bearer ") ? authorization.slice(7) : null;
    if (key === null || key.length > maxKeyLength || !key.startsWith("sk_")) return undefined;
    const entry = this.#cache.warm(key);
    if (!entry) return undefined;
    const environment = environmentOf(key);
    this.#requireRightMode(environment, presented);
    const admitted = this.#admit(entry, environment, presented);
    return admitted instanceof Promise ? admitted : admitted.principal;
  }

  /**
   * Returns the principal of a member who is signed in at a browser, from the membership's credential that was found
   * with the session. Rejects with `invalid_api_key` or `service_unavailable`. Operators also get `admin:manage`.
   */
  async member(
    credentialId: string,
    environment: Environment,
    person: Pick<SignedInPerson, "id" | "isOperator" | "sessionId">,
    presented: PresentedCredentials,
  ): Promise<Principal> {
    this.#requireRightMode(environment, presented);
    const entry = await this.#admit(await this.#cache.byId(credentialId), environment, presented);
    const { principal } = entry;
    if (principal.person?.id !== person.id) throw this.#refuse("no_member", presented, entry);
    const scopes = new Set(principal.scopes);
    if (person.isOperator) scopes.add("admin:manage");
    return { ...principal, scopes, person: { ...principal.person, ...person } };
  }

  /**
   * Returns the principal of a credential that was presented earlier, for work that continues without its client. The
   * client's address was checked then. Rejects with `invalid_api_key` if the credential has ended.
   */
  async behind(credentialId: string): Promise<Principal> {
    const entry = await this.#cache.byId(credentialId);
    if (!entry) throw invalidApiKey("unknown");
    const now = this.#options.clock.nowSeconds();
    if (entry.raisesEndAt <= now) this.#cache.endRaises(entry, now);
    if (entry.revokedAt <= now) throw invalidApiKey(endOf(entry, now, "revoked"));
    if (entry.expiresAt <= now) throw invalidApiKey(endOf(entry, now, "expired"));
    if (entry.fault !== undefined) throw invalidApiKey(entry.fault, suspensionReason(entry.fault));
    return entry.principal;
  }

  /**
   * Returns the current rights of an admitted request, for work that it starts later. Rejects with `invalid_api_key` if
   * the credential has ended or the signing key of the request's token was withdrawn.
   */
  async still(admitted: Principal): Promise<Principal> {
    const { tokenSignedBy } = admitted;
    if (tokenSignedBy !== undefined && !this.#options.tokens.isSigner(tokenSignedBy)) {
      throw invalidApiKey("token_key_unknown");
    }
    const now = await this.behind(admitted.keys[0].id);
    return { ...now, scopes: now.scopes.intersection(admitted.scopes) };
  }

  #check(presented: PresentedCredentials): Principal | Promise<Principal> {
    const { authorization, apiKey: header } = presented;
    const apiKey = header === "" ? null : header;
    const bearer = authorization === null ? undefined : /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (authorization !== null && bearer === undefined) throw this.#refuse("authorization_not_bearer", presented);
    if (apiKey !== null && bearer !== undefined && apiKey !== bearer) throw this.#refuse("two_credentials", presented);
    const credential = bearer ?? apiKey;
    if (credential === null) throw this.#refuse("missing", presented);
    if (credential.startsWith("sk_")) return this.#byKey(credential, presented);
    if (!credential.includes(".")) throw this.#refuse("malformed", presented);
    if (apiKey !== null) throw this.#refuse("token_as_api_key", presented);
    return this.#byToken(credential, presented);
  }

  #byKey(key: string, presented: PresentedCredentials): Principal | Promise<Principal> {
    const environment = parseApiKey(key);
    if (environment === undefined) throw this.#refuse("malformed", presented);
    this.#requireRightMode(environment, presented);
    // The store finds a key by its HMAC under a secret pepper. An attacker cannot compute digests, so the time of the
    // look-up reveals nothing useful about stored digests, and no comparison here needs constant time.
    const entry = this.#cache.warm(key) ?? this.#lookUp(key, presented.clientAddress);
    return andThen(entry, (found) =>
      andThen(this.#admit(found, environment, presented), (admitted) => admitted.principal),
    );
  }

  #lookUp(key: string, clientAddress: string): Promise<CachedChain | undefined> {
    const index = memoryIndex(key);
    const read = () => this.#cache.byKey(key, index, () => this.#digestsOf(key));
    return this.#options.unknown.find(index, clientAddress, read);
  }

  #digestsOf(key: string): Digests {
    const [current, ...older] = keyRing(this.#options.pepper);
    return [keyDigest(key, current), ...older.map((pepper) => keyDigest(key, pepper))];
  }

  #byToken(text: string, presented: PresentedCredentials): Principal | Promise<Principal> {
    return andThen(this.#options.tokens.verify(text), (verification: Verification) => {
      if ("fault" in verification) {
        if (verification.fault === "expired") throw new GatewayError("token_expired", "Token has expired");
        throw this.#refuse(verification.fault, presented);
      }
      const { token } = verification;
      this.#requireRightMode(token.environment, presented);
      return andThen(this.#cache.byId(token.keyId), (found) =>
        andThen(this.#admit(found, token.environment, presented), (entry) => {
          const [{ accountId, appId, personId }] = entry.principal.keys;
          if (accountId !== token.accountId) throw this.#refuse("token_account", presented, entry);
          if (appId !== token.appId) throw this.#refuse("token_app", presented, entry);
          if (token.appId !== null && personId !== token.personId) throw this.#refuse("token_person", presented, entry);
          // A token that was issued for a key is valid for all resources, like the key itself.
          const isGood = token.appId === null || coversResource(token.resources, presented.resource ?? apiResource);
          if (!isGood) throw this.#refuse("token_resource", presented, entry);
          return this.#narrow(entry.principal, token);
        }),
      );
    });
  }

  #narrow(ofKey: Principal, token: VerifiedToken): Principal {
    let byToken = this.#narrowed.get(ofKey);
    const known = byToken?.get(token);
    if (known) return known;
    if (!byToken) {
      byToken = new WeakMap();
      this.#narrowed.set(ofKey, byToken);
    }
    const principal = {
      ...ofKey,
      scopes: ofKey.scopes.intersection(token.scopes),
      tokenExpiresAt: token.expiresAt,
      tokenSignedBy: token.signedBy,
    };
    byToken.set(token, principal);
    return principal;
  }

  #requireRightMode(environment: Environment, presented: PresentedCredentials): void {
    if (environment !== "dev" || this.#options.mode === "development") return;
    throw this.#refuse("dev_key_in_production", presented);
  }

  #admit(
    entry: CachedChain | undefined,
    environment: Environment,
    presented: PresentedCredentials,
  ): CachedChain | Promise<never> {
    if (!entry) throw this.#refuse("unknown", presented);
    const now = this.#options.clock.nowSeconds();
    if (entry.raisesEndAt <= now) this.#cache.endRaises(entry, now);
    if (entry.revokedAt <= now) {
      const error = this.#refuse(endOf(entry, now, "revoked"), presented, entry);
      if (entry.revokedAt === Number.NEGATIVE_INFINITY) throw error;
      return this.#end(now, error);
    }
    if (entry.expiresAt <= now) throw this.#refuse(endOf(entry, now, "expired"), presented, entry);
    if (entry.fault !== undefined) throw this.#refuse(entry.fault, presented, entry, suspensionReason(entry.fault));
    if (entry.principal.environment !== environment) throw this.#refuse("environment", presented, entry);
    if (entry.allowedIps && !allContain(entry.allowedIps, presented.clientAddress)) {
      throw this.#refuse("address", presented, entry);
    }
    // This check comes last, because only the owner of a valid key may learn the reason.
    const elsewhere = environment === "dev" ? presented.whyNotLocal() : undefined;
    if (elsewhere !== undefined) throw this.#refuse("dev_key_not_local", presented, entry, elsewhere);
    if (presented.isCheck) return entry;
    if (entry.isWaiting) entry.seconds = now;
    else if (entry.seconds !== now) this.#options.activity.used(entry, now);
    return entry;
  }

  /**
   * Stores a revocation that took effect by the clock as final before reporting it, so that setting the clock back does
   * not undo it.
   */
  async #end(nowSeconds: number, error: GatewayError): Promise<never> {
    const { clock, keys } = this.#options;
    if (clock.monotonicMs() >= this.#endAgainMs) {
      this.#ending ??= keys
        .endDue(nowSeconds)
        .then(() => this.invalidate())
        // If the store is unavailable, the request is still refused, and a later refusal stores the revocation.
        .catch(() => {
          this.#endAgainMs = clock.monotonicMs() + endAgainMs;
        })
        .finally(() => {
          this.#ending = undefined;
        });
      await this.#ending;
    }
    throw error;
  }

  /** Returns the refusal. `clientReason` is set only if the client may learn the reason. */
  #refuse(
    reason: string,
    { clientAddress, requestId }: PresentedCredentials,
    entry?: CachedChain,
    clientReason?: string,
  ): GatewayError {
    const keyId = entry?.keyId ?? null;
    const accountId = entry?.principal.account.id ?? null;
    this.#options.refusals.record({ reason, keyId, accountId, clientAddress, requestId });
    return invalidApiKey(reason, clientReason);
  }
}

/** Returns the reason, which tells whether the key itself or one that it depends on has ended. */
function endOf({ principal: { keys } }: CachedChain, nowSeconds: number, status: "revoked" | "expired"): string {
  const own = keyStatus(keys[0], nowSeconds) !== "active";
  return own ? status : `ancestor_${status}`;
}

/**
 * Reports whether every list contains the address. This is a separate function, because variables that a closure refers
 * to are allocated on the heap even if the closure is never created. Every request passes through the caller; only
 * those of keys with an address list get here.
 */
function allContain(lists: readonly (readonly IpRange[])[], address: string): boolean {
  return lists.every((ranges) => rangesContain(ranges, address));
}

/** Calls `next` immediately if the value is no promise. */
function andThen<Value, Result>(
  value: Value | Promise<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(next) : next(value);
}
