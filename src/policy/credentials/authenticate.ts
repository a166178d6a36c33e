// Turns the credentials of a request into a principal, or refuses with one message that tells an attacker nothing.

import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { invalidApiKey } from "../../base/invalid-api-key.ts";
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

/** What a request presents, and from where. */
export interface PresentedCredentials {
  /** Value of `Authorization`. */
  authorization: string | null;
  /** Value of `X-API-Key`, or of `api-key`. */
  apiKey: string | null;
  clientAddress: string;
  requestId: string;
  /** Path of the resource that it is presented at; left out: the API. */
  resource?: string;
  /** Why what is for this machine alone does not count from here; undefined: it does. Only asked for development keys. */
  whyNotLocal(): string | undefined;
  /** True for the check of an open connection, which records no use of its key. Left out: a request. */
  isCheck?: boolean;
}

export interface AuthenticatorOptions extends CredentialCacheOptions {
  pepper: Keys;
  /** Development keys work in development mode only, and only for local requests. */
  mode: "development" | "production";
  tokens: Pick<AccessTokens, "verify" | "isSigner">;
  activity: Pick<KeyActivity, "used">;
  refusals: Pick<RefusalLog, "record">;
  unknown: Pick<UnknownCredentials, "find">;
  clock: Clock;
}

/** Longer than any key. */
const maxKeyLength = 64;
/** How long a store that could not be written is left alone. */
const endAgainMs = 1_000;

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  #ending: Promise<void> | undefined;
  #endAgainMs = Number.NEGATIVE_INFINITY;
  readonly #cache: CredentialCache;
  /**
   * What a token leaves of its key's principal. By that principal first: with it goes all that was made from it, where a
   * token that is remembered for hours would keep alive those of each change of a credential in between.
   */
  readonly #narrowed = new WeakMap<Principal, WeakMap<VerifiedToken, Principal>>();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#cache = new CredentialCache(options);
  }

  /** Watches the store in the background for changes that other processes make. */
  start(): void {
    this.#cache.start();
  }

  close(): void {
    this.#cache.close();
  }

  /** Credentials in memory, and the milliseconds since the store last said that they hold. */
  get figures(): { cached: number; unconfirmedMs: number } {
    return this.#cache.figures;
  }

  /**
   * Another process says that something changed, and perhaps which keys, accounts, people and apps: it holds here from when
   * this resolves. Never rejects.
   */
  hint(ids?: readonly string[]): Promise<void> {
    return this.#cache.hint(ids);
  }

  /** Whether the store answers now, which takes a second at most; `away`: credentials in memory are still believed. */
  reach(): Promise<"ok" | "away" | "gone"> {
    return this.#cache.reach();
  }

  /** The same as of the last look, a second ago or so, without asking. */
  get standing(): "ok" | "away" | "gone" {
    return this.#cache.standing;
  }

  /** After every change of a key, account, tier or limit by this process: it holds from here on. */
  invalidate(): void {
    this.#cache.invalidate();
  }

  /** After a change of what limits are made of, such as tiers, by whichever process. */
  limitsChanged(): void {
    this.#cache.limitsChanged();
  }

  /**
   * Throws or rejects with `invalid_api_key`, its reason in `detail` for the log alone; `token_expired`;
   * `service_unavailable` where the store would have to be asked and cannot; or `rate_limit_exceeded` where it would have
   * to be asked for one who presented too many keys that are nobody's. A promise only where something has to be looked up.
   */
  authenticate(presented: PresentedCredentials): Principal | Promise<Principal> {
    return this.#warm(presented) ?? this.#check(presented);
  }

  /** A key that is known well: only such that were found well-formed are remembered, so that is not asked again. */
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
   * A member who is signed in at a browser: the membership's credential, which was found with the session. Rejects as
   * `authenticate` does. Operators have `admin:manage` as well.
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
   * Who stands behind a credential that was presented before, for what goes on without its client: where that came from was
   * looked at then. Rejects with `invalid_api_key` where it has ended since.
   */
  async behind(credentialId: string): Promise<Principal> {
    const entry = await this.#cache.byId(credentialId);
    if (!entry) throw invalidApiKey("unknown");
    const now = this.#options.clock.nowSeconds();
    if (entry.revokedAt <= now) throw invalidApiKey(endOf(entry, now, "revoked"));
    if (entry.expiresAt <= now) throw invalidApiKey(endOf(entry, now, "expired"));
    if (entry.fault !== undefined) throw invalidApiKey(entry.fault);
    return entry.principal;
  }

  /**
   * What is left by now of the rights with which a request was admitted, for what it begins anew on its way. Rejects as
   * `behind` does, and where the signing key of the request's token was withdrawn.
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
    // The store finds it by its HMAC under a secret pepper: how long the look-up takes tells nothing about any stored
    // digest that an attacker, who cannot compute digests, could use. So no comparison here has to take constant time.
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
          // One that was made from a key works wherever the key does.
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
    if (entry.revokedAt <= now) {
      const error = this.#refuse(endOf(entry, now, "revoked"), presented, entry);
      if (entry.revokedAt === Number.NEGATIVE_INFINITY) throw error;
      return this.#end(now, error);
    }
    if (entry.expiresAt <= now) throw this.#refuse(endOf(entry, now, "expired"), presented, entry);
    if (entry.fault !== undefined) throw this.#refuse(entry.fault, presented, entry);
    if (entry.principal.environment !== environment) throw this.#refuse("environment", presented, entry);
    if (entry.allowedIps && !allContain(entry.allowedIps, presented.clientAddress)) {
      throw this.#refuse("address", presented, entry);
    }
    // Last of all, as the reason is told to nobody but the owner of a valid key.
    const elsewhere = environment === "dev" ? presented.whyNotLocal() : undefined;
    if (elsewhere !== undefined) throw this.#refuse("dev_key_not_local", presented, entry, elsewhere);
    if (presented.isCheck) return entry;
    if (entry.isWaiting) entry.seconds = now;
    else if (entry.seconds !== now) this.#options.activity.used(entry, now);
    return entry;
  }

  /** A revocation took effect by the clock: before that is told, it becomes one that a clock set back does not lift. */
  async #end(nowSeconds: number, error: GatewayError): Promise<never> {
    const { clock, keys } = this.#options;
    if (clock.monotonicMs() >= this.#endAgainMs) {
      this.#ending ??= keys
        .endDue(nowSeconds)
        .then(() => this.invalidate())
        // While the store is away the refusal stands all the same; a later one will tell it.
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

  /** `clientReason` is the reason for the client, where it may learn it. */
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

/** Whether it is the key itself or one that it depends on. */
function endOf({ principal: { keys } }: CachedChain, nowSeconds: number, status: "revoked" | "expired"): string {
  const own = keyStatus(keys[0], nowSeconds) !== "active";
  return own ? status : `ancestor_${status}`;
}

/** Apart from where every request passes: what a closure refers to is kept on the heap, whether or not it is made. */
function allContain(lists: readonly (readonly IpRange[])[], address: string): boolean {
  return lists.every((ranges) => rangesContain(ranges, address));
}

/** Goes on at once where nothing has to be waited for. */
function andThen<Value, Result>(
  value: Value | Promise<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(next) : next(value);
}
