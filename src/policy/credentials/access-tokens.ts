// Access tokens (RFC 9068): made from an API key, verified, and remembered so that a warm one costs no signature check.

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
  /** The public URL; asked each time, as a port of 0 is known only once the server listens. */
  issuer(): string;
  /** The base URL of the API, with `/v1`. */
  audience(): string;
  clock: Clock;
}

export interface TokenRequest {
  /** Who asks, as the key was authenticated. */
  principal: Principal;
  /** Seconds, 60 to 86,400. */
  expiresIn: number;
  /** Names separated by spaces; undefined: all that the key has, `admin:manage` excepted. */
  scope: string | undefined;
  origin: Origin;
}

/** For an app that a person allowed, RFC 9068, 2.2. */
export interface GrantTokenRequest {
  grant: Pick<ApiKeyRecord, "id" | "accountId" | "environment">;
  /** Who allowed it. */
  personId: string;
  appId: string;
  scopes: readonly Scope[];
  /** Paths of the resources at which it is to work. */
  resources: readonly string[];
  /** Seconds. */
  expiresIn: number;
}

export interface IssuedToken {
  accessToken: string;
  /** Seconds; less than asked for where the key ends sooner. */
  expiresIn: number;
  scope: string;
  /** `jti`. */
  id: string;
}

/** What a genuine token says. */
export interface VerifiedToken {
  accountId: string;
  /** The id of the key that it was made from, or of the grant. */
  keyId: string;
  /** The app that it was issued to; null for a token that was made from a key. */
  appId: string | null;
  /** Who allowed that app; null for a token that was made from a key. */
  personId: string | null;
  environment: Environment;
  scopes: ReadonlySet<Scope>;
  /** Paths of the resources for which it was issued. */
  resources: readonly string[];
  /** Unix seconds. */
  expiresAt: number;
  /** The id of its signing key. */
  signedBy: string;
}

/** `fault` is one of a few words; `expired` only for a genuine token. */
export type Verification = { token: VerifiedToken } | { fault: string };

export const minTokenSeconds = 60;
export const defaultTokenSeconds = 3_600;
const audienceFault = "token_claim_aud";
const algorithm = "ES256";
const type = "at+jwt";
const requiredClaims = ["iss", "sub", "aud", "client_id", "scope", "iat", "exp", "jti", "key_id", "environment"];
/** base64url as RFC 4648, 3.5 has it: with other bits where the last character has some to spare, a token had 16 spellings. */
const canonicalPart = String.raw`(?:[\w-]{4})+(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?`;
const canonicalToken = new RegExp(`^${canonicalPart}\\.${canonicalPart}\\.${canonicalPart}$`);
/** Several times what we make. */
const maxLength = 4_096;
const capacity = 50_000;
/** So long an expired token is told so for sure, also where its signing key is gone. */
const rememberedSeconds = 7_200;
const maxChecks = 16;
const maxWaiting = 4_000;

export class AccessTokens {
  readonly #options: AccessTokensOptions;
  /** By digest, so that a look into memory finds no token. */
  readonly #verified = new LruMap<{ token: VerifiedToken }>(capacity);
  readonly #checking = new Map<string, Promise<Verification>>();
  readonly #turns = new Turns(maxChecks, maxWaiting);

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  /** Throws `invalid_request` or `insufficient_scope` for a scope that cannot be given. */
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
    // Before it is handed out: there is no token that the audit log does not know.
    await audit.append([event]).catch((error) => {
      throw new GatewayError("service_unavailable", "The audit log cannot be written; try again in a moment.", {
        detail: `audit: ${String(error)}`,
        retryAfterSeconds: 1,
        cause: error,
      });
    });
    return { accessToken, expiresIn: expiresAt - now, scope, id };
  }

  /** Writes nothing: whoever issues the grant records it. The token works for as long as the grant does. */
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

  /** A signing key ended: each token is checked anew at its next use. */
  forget(): void {
    this.#verified.clear();
  }

  /** Reports whether tokens that this key signed are accepted, as far as this process knows. */
  isSigner(signingKeyId: string): boolean {
    return this.#options.signingKeys.isPublished?.(signingKeyId) !== false;
  }

  /** A promise only for a token that was not seen lately. Says nothing of the key that it was made from. */
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
      // It may have ended while the signature was checked.
      if (!this.isSigner(kid)) return { fault: "token_key_unknown" };
      const verification = { token };
      this.#remember(digest, verification, now);
      return verification;
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      // Its audience is read last of all, but one of somebody else's is no genuine one that has expired.
      const { payload } = error as { payload?: Readonly<Record<string, unknown>> };
      const fault = faultOf(error);
      return { fault: fault === "expired" && this.#resourcesOf(payload ?? {}).length === 0 ? audienceFault : fault };
    }
  }

  /** None where it is for somebody else as well. */
  #resourcesOf({ aud }: Readonly<Record<string, unknown>>): string[] {
    const named: unknown[] = Array.isArray(aud) ? aud : [aud];
    const issuer = this.#options.issuer();
    const paths = named.map((uri) => (typeof uri === "string" ? resourceOf(uri, issuer) : undefined));
    const known = paths.filter((path) => path !== undefined);
    return known.length === paths.length ? known : [];
  }

  /** For each new one up to two that expired long ago are forgotten: there are as many as are in use, not as ever were. */
  #remember(digest: string, verification: { token: VerifiedToken }, nowSeconds: number): void {
    for (let i = 0; i < 2; i++) {
      const { oldest } = this.#verified;
      if (oldest && oldest.value.token.expiresAt + rememberedSeconds < nowSeconds) this.#verified.delete(oldest.key);
    }
    this.#verified.set(digest, verification);
  }
}

class UnknownKey extends Error {}

/** In the order of `accountScopes`. */
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

/** The signature is ours; the shape is checked all the same, as an older version may have made it. */
function readClaims(
  claims: Readonly<Record<string, unknown>>,
  resources: readonly string[],
  signedBy: string,
): VerifiedToken | undefined {
  const { sub, key_id: keyId, client_id: clientId, account_id: ofGrant, scope, exp, environment: named } = claims;
  const environment = environments.find((name) => name === named);
  if (typeof sub !== "string" || typeof keyId !== "string" || typeof scope !== "string") return undefined;
  if (typeof exp !== "number" || environment === undefined || typeof clientId !== "string") return undefined;
  // A key's token is the account's own; a grant's is an app's on behalf of a person.
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
    // Checked last of all, so that only a genuine token gets here.
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
