// Access tokens (RFC 9068): issued for an API key, verified, and cached so that a known token costs no signature check.

import { type Clock, maxClockDifferenceSeconds } from "../../base/clock.ts";
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { type Environment, environments } from "../../domain/api-key.ts";
import type { AuditLog } from "../../domain/audit.ts";
import { type ApiKeyRecord, keyOf, type Principal } from "../../domain/principal.ts";
import { type Scope, scopes } from "../../domain/scope.ts";
import { LruMap } from "../lru-map.ts";
import { auditEvent, type Origin } from "../records/audit.ts";
import { Turns } from "../turns.ts";
import { resourceOf } from "./resources.ts";
import { maxTokenSeconds, type SigningKeys } from "./signing-keys.ts";

export interface AccessTokensOptions {
  signingKeys: Pick<SigningKeys, "signer" | "verifier"> & Partial<Pick<SigningKeys, "isPublished">>;
  audit: Pick<AuditLog, "append">;
  /** Returns the public URL. Called each time, because a port of 0 is known only after the server listens. */
  issuer(): string;
  /** Returns the base URL of the API, with `/v1`. */
  audience(): string;
  clock: Clock;
}

export interface TokenRequest {
  /** The principal of the key that requests the token. */
  principal: Principal;
  /** The lifetime in seconds, 60 to 86,400. */
  expiresIn: number;
  /** Scopes separated by spaces; undefined requests all scopes of the key except `admin:manage`. */
  scope: string | undefined;
  origin: Origin;
}

/** A request for a token of an app that a person allowed (RFC 9068, 2.2). */
export interface GrantTokenRequest {
  grant: Pick<ApiKeyRecord, "id" | "accountId" | "environment">;
  /** Id of the person who allowed the app. */
  personId: string;
  appId: string;
  scopes: readonly Scope[];
  /** Paths of the resources that the token is for. */
  resources: readonly string[];
  /** Lifetime in seconds. */
  expiresIn: number;
}

export interface IssuedToken {
  accessToken: string;
  /** Lifetime in seconds; shorter than requested if the key ends sooner. */
  expiresIn: number;
  scope: string;
  /** The claim `jti`. */
  id: string;
}

/** The content of a genuine token. */
export interface VerifiedToken {
  accountId: string;
  /** Id of the key or grant that the token was issued for. */
  keyId: string;
  /** Id of the app that the token was issued to; null for a token of a key. */
  appId: string | null;
  /** Id of the person who allowed the app; null for a token of a key. */
  personId: string | null;
  environment: Environment;
  scopes: ReadonlySet<Scope>;
  /** Paths of the resources that the token was issued for. */
  resources: readonly string[];
  /** Expiry in Unix seconds. */
  expiresAt: number;
  /** Id of the signing key. */
  signedBy: string;
}

/** The result of a verification. `fault` is one of a few fixed words, and `expired` only for a genuine token. */
export type Verification = { token: VerifiedToken } | { fault: string };

export const minTokenSeconds = 60;
export const defaultTokenSeconds = 3_600;
const audienceFault = "token_claim_aud";
const algorithm = "ES256";
const type = "at+jwt";
const requiredClaims = ["iss", "sub", "aud", "client_id", "scope", "iat", "exp", "jti", "key_id", "environment"];
/**
 * Matches canonical base64url (RFC 4648, 3.5). Without this, unused bits of the last character would give each token 16
 * spellings.
 */
const canonicalPart = String.raw`(?:[\w-]{4})+(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?`;
const canonicalToken = new RegExp(`^${canonicalPart}\\.${canonicalPart}\\.${canonicalPart}$`);
/** Maximum length of a token: several times that of any issued token. */
const maxLength = 4_096;
const capacity = 50_000;
/** Seconds after its expiry for which a token is still reported as expired, even if its signing key is gone. */
const rememberedSeconds = 7_200;
const maxChecks = 16;
const maxWaiting = 4_000;

export class AccessTokens {
  readonly #options: AccessTokensOptions;
  /** The verified tokens by digest, so that reading the memory reveals no token. */
  readonly #verified = new LruMap<{ token: VerifiedToken }>(capacity);
  readonly #checking = new Map<string, Promise<Verification>>();
  readonly #turns = new Turns(maxChecks, maxWaiting);

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  /** Issues a token for a key. Throws `invalid_request` or `insufficient_scope` for a scope that cannot be granted. */
  async issue({ principal, expiresIn, scope: wanted, origin }: TokenRequest): Promise<IssuedToken> {
    const { audit, clock } = this.#options;
    const granted = grantedScopes(principal, wanted);
    const key = keyOf(principal);
    const now = clock.nowSeconds();
    const ends = principal.keys.flatMap(({ expiresAt, revokedAt }) => [expiresAt ?? Infinity, revokedAt ?? Infinity]);
    const expiresAt = Math.min(now + Math.min(expiresIn, maxTokenSeconds), ...ends);
    const id = `tok_${Bun.randomUUIDv7()}`;
    const scope = granted.join(" ");
    const accessToken = await this.#sign({
      sub: principal.account.id,
      client_id: key.id,
      scope,
      iat: now,
      exp: expiresAt,
      jti: id,
      key_id: key.id,
      environment: principal.environment,
    });
    const detail = { jti: id, scopes: granted, expires_at: expiresAt };
    const event = auditEvent("token.issued", principal, origin, {
      accountId: principal.account.id,
      targetId: key.id,
      detail,
    });
    // The event is written before the token is returned, so that the audit log knows every token.
    await audit.append([event]).catch((error) => {
      throw new GatewayError("service_unavailable", "The audit log cannot be written; try again in a moment.", {
        detail: `audit: ${String(error)}`,
        retryAfterSeconds: 1,
        cause: error,
      });
    });
    return { accessToken, expiresIn: expiresAt - now, scope, id };
  }

  /**
   * Issues a token for a grant and writes nothing: the creator of the grant records it. The token ends with the grant,
   * if it has not expired before.
   */
  async issueForGrant({
    grant,
    personId,
    appId,
    scopes,
    resources,
    expiresIn,
  }: GrantTokenRequest): Promise<IssuedToken> {
    const now = this.#options.clock.nowSeconds();
    const id = `tok_${Bun.randomUUIDv7()}`;
    const scope = scopes.join(" ");
    const audiences = resources.map((path) => `${this.#options.issuer()}${path}`);
    const accessToken = await this.#sign({
      aud: audiences.length === 1 ? audiences[0] : audiences,
      sub: personId,
      client_id: appId,
      scope,
      iat: now,
      exp: now + expiresIn,
      jti: id,
      key_id: grant.id,
      account_id: grant.accountId,
      environment: grant.environment,
    });
    return { accessToken, expiresIn, scope, id };
  }

  async #sign(claims: Readonly<Record<string, unknown>>): Promise<string> {
    const { signingKeys, issuer, audience } = this.#options;
    const [{ SignJWT }, signer] = await Promise.all([import("jose/jwt/sign"), signingKeys.signer()]);
    return new SignJWT({ iss: issuer(), aud: audience(), ...claims })
      .setProtectedHeader({ alg: algorithm, typ: type, kid: signer.id })
      .sign(signer.privateKey);
  }

  /** Drops cached tokens, so that each token is verified again at its next use. Call after a signing key ended. */
  forget(): void {
    this.#verified.clear();
  }

  /** Reports whether tokens of this signing key are accepted, as far as this process knows. */
  isSigner(signingKeyId: string): boolean {
    return this.#options.signingKeys.isPublished?.(signingKeyId) !== false;
  }

  /**
   * Checks a token. Returns a promise only for a token that is not cached. Does not check the key that the token was
   * issued for.
   */
  verify(token: string): Verification | Promise<Verification> {
    if (token.length > maxLength || !canonicalToken.test(token)) return { fault: "malformed" };
    const digest = new Bun.CryptoHasher("sha256").update(token).digest("hex");
    const known = this.#verified.get(digest);
    if (known) return known.token.expiresAt > this.#options.clock.nowSeconds() ? known : { fault: "expired" };
    let checking = this.#checking.get(digest);
    if (!checking) {
      const turn = this.#turns.run(() => this.#check(token, digest));
      if (!turn) throw overloaded();
      checking = turn.finally(() => this.#checking.delete(digest));
      this.#checking.set(digest, checking);
    }
    return checking;
  }

  async #check(text: string, digest: string): Promise<Verification> {
    const { signingKeys, issuer, clock } = this.#options;
    const { jwtVerify } = await import("jose/jwt/verify");
    const now = clock.nowSeconds();
    try {
      const { payload, protectedHeader } = await jwtVerify(
        text,
        async ({ kid }) => {
          const key = kid === undefined ? undefined : await signingKeys.verifier(kid);
          if (!key) throw new UnknownKey();
          return key;
        },
        {
          algorithms: [algorithm],
          typ: type,
          issuer: issuer(),
          requiredClaims,
          currentDate: new Date(now * 1000),
        },
      );
      const resources = this.#resourcesOf(payload);
      if (resources.length === 0) return { fault: audienceFault };
      const { kid = "" } = protectedHeader;
      const token = readClaims(payload, resources, kid);
      if (!token) return { fault: "token_claims" };
      if (Number(payload.iat) > now + maxClockDifferenceSeconds) return { fault: "token_claim_iat" };
      // The signing key may have ended while the signature was checked.
      if (!this.isSigner(kid)) return { fault: "token_key_unknown" };
      const verification = { token };
      this.#remember(digest, verification, now);
      return verification;
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      // The audience is checked only after the library has checked everything else. An expired token for another
      // audience must still not be reported as a genuine expired token.
      const { payload } = error as { payload?: Readonly<Record<string, unknown>> };
      const fault = faultOf(error);
      return { fault: fault === "expired" && this.#resourcesOf(payload ?? {}).length === 0 ? audienceFault : fault };
    }
  }

  /** Returns the resources that the token is for; none if one of its audiences is no resource of this gateway. */
  #resourcesOf({ aud }: Readonly<Record<string, unknown>>): string[] {
    const named: unknown[] = Array.isArray(aud) ? aud : [aud];
    const issuer = this.#options.issuer();
    const paths = named.map((uri) => (typeof uri === "string" ? resourceOf(uri, issuer) : undefined));
    const known = paths.filter((path) => path !== undefined);
    return known.length === paths.length ? known : [];
  }

  /**
   * Caches a token. For each new token, up to two that expired long ago are removed, so the cache does not grow with
   * all tokens ever issued.
   */
  #remember(digest: string, verification: { token: VerifiedToken }, nowSeconds: number): void {
    for (let i = 0; i < 2; i++) {
      const { oldest } = this.#verified;
      if (oldest && oldest.value.token.expiresAt + rememberedSeconds < nowSeconds) this.#verified.delete(oldest.key);
    }
    this.#verified.set(digest, verification);
  }
}

class UnknownKey extends Error {}

/** Returns the scopes of a new token in the order of `scopes`. */
function grantedScopes(principal: Principal, wanted: string | undefined): Scope[] {
  if (wanted === undefined) {
    const granted = scopes.filter((scope) => scope !== "admin:manage" && principal.scopes.has(scope));
    if (granted.length > 0) return granted;
    throw invalidRequest(
      "scope: is required for this key, which has no scope that a token gets without being asked for; admin:manage has to be named.",
    );
  }
  const names = new Set(wanted.split(" ").filter((name) => name !== ""));
  const known: ReadonlySet<string> = new Set(scopes);
  const unknown = [...names].find((name) => !known.has(name));
  if (unknown !== undefined || names.size === 0) {
    const got = unknown === undefined ? "" : ` (got ${JSON.stringify(unknown.slice(0, 64))})`;
    throw invalidRequest(
      `scope: must be names from ${scopes.join(", ")}, separated by spaces${got}. Leave it out for all of the key's scopes.`,
    );
  }
  const granted = scopes.filter((scope) => names.has(scope));
  const lacking = granted.find((scope) => !principal.scopes.has(scope));
  if (lacking === undefined) return granted;
  throw new GatewayError("insufficient_scope", `API key lacks required scope: ${lacking}`);
}

/**
 * Returns the content of a token; undefined if its shape is wrong. The signature is genuine, but an older version may
 * have issued the token.
 */
function readClaims(
  claims: Readonly<Record<string, unknown>>,
  resources: readonly string[],
  signedBy: string,
): VerifiedToken | undefined {
  const { sub, key_id: keyId, client_id: clientId, account_id: ofGrant, scope, exp, environment: named } = claims;
  const environment = environments.find((name) => name === named);
  if (typeof sub !== "string" || typeof keyId !== "string" || typeof scope !== "string") return undefined;
  if (typeof exp !== "number" || environment === undefined || typeof clientId !== "string") return undefined;
  // A token of a key acts for the account, and a token of a grant for an app on behalf of a person.
  const isGrants = typeof ofGrant === "string";
  if (!isGrants && clientId !== keyId) return undefined;
  const names = new Set(scope.split(" "));
  const granted = new Set(scopes.filter((name) => names.has(name)));
  const whose = isGrants
    ? { accountId: ofGrant, appId: clientId, personId: sub }
    : { accountId: sub, appId: null, personId: null };
  return { ...whose, keyId, environment, scopes: granted, resources, expiresAt: exp, signedBy };
}

function faultOf(error: unknown): string {
  if (error instanceof UnknownKey) return "token_key_unknown";
  const { code, claim } = error as { code?: unknown; claim?: unknown };
  switch (code) {
    // The library checks the expiry last, so the token is genuine here.
    case "ERR_JWT_EXPIRED":
      return "expired";
    case "ERR_JWT_CLAIM_VALIDATION_FAILED":
      return `token_claim_${requiredClaims.find((name) => name === claim) ?? "other"}`;
    case "ERR_JWS_SIGNATURE_VERIFICATION_FAILED":
      return "token_signature";
    case "ERR_JOSE_ALG_NOT_ALLOWED":
      return "token_algorithm";
    default:
      return "malformed";
  }
}

function overloaded(): GatewayError {
  return new GatewayError("service_unavailable", "Too many access tokens wait to be checked; try again in a moment.", {
    detail: "token_checks",
    retryAfterSeconds: 1,
  });
}
