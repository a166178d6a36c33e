// The operator's OpenID Connect provider: sends people there, and verifies its claims about those who return.
import type { Configuration, CustomFetchOptions } from "openid-client";
import { type Clock, systemClock } from "../base/clock.ts";
import { forbidden, GatewayError } from "../base/errors.ts";

export interface IdentityProviderSettings {
  /** The provider's display name. */
  name: string;
  /** An https URL, or http on this machine. */
  issuer: string;
  clientId: string;
  /** A secret, or undefined for a public client. */
  clientSecret: string | undefined;
  scopes: readonly string[];
}

/**
 * Random values that tie the provider's callback to the sign-in that it answers. The browser carries `state` and
 * `nonce`, but only a digest of `verifier`.
 */
export interface SignInSecrets {
  state: string;
  nonce: string;
  /** The PKCE verifier (RFC 7636). */
  verifier: string;
  redirectUri: string;
}

export interface ProvenIdentity {
  issuer: string;
  subject: string;
  /** Undefined if the provider does not claim that the address is verified. */
  verifiedEmail: string | undefined;
  name: string | undefined;
}

export interface IdentityProviderOptions {
  settings: IdentityProviderSettings;
  clock: Pick<Clock, "monotonicMs">;
  /** The time limit of each request to the provider. */
  timeoutMs?: number;
}

const freshMs = 3_600_000;
const defaultTimeoutMs = 5_000;
const maxAnswerLength = 1_048_576;
/** The allowed difference between the provider's clock and ours. */
const toleranceSeconds = 30;
/**
 * The number of seconds that the provider's clock may be ahead. The time of issue is not a deadline, so a token from the future
 * gains no advantage.
 */
const maxAheadSeconds = 300;

export class IdentityProvider {
  readonly #options: IdentityProviderOptions;
  #known: { configuration: Promise<Configuration>; endsMs: number } | undefined;

  constructor(options: IdentityProviderOptions) {
    this.#options = options;
  }

  /** Returns the URL for the browser. Throws `service_unavailable` if the provider's metadata cannot be read. */
  async authorizationUrl({ state, nonce, verifier, redirectUri }: SignInSecrets): Promise<string> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import("openid-client");
    const configuration = await this.#configuration();
    try {
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: this.#options.settings.scopes.join(" "),
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        ...{ state, nonce },
      });
      return url.href;
    } catch (error) {
      this.#known = undefined;
      throw this.#unreachable(error);
    }
  }

  /**
   * Returns the person's identity, from the query of the provider's callback. Throws `permission_denied` if the
   * provider refused the sign-in, `upstream_error` if its answer is invalid, and `service_unavailable`.
   */
  async redeem(query: URLSearchParams, secrets: SignInSecrets): Promise<ProvenIdentity> {
    const { authorizationCodeGrant, fetchUserInfo } = await import("openid-client");
    const configuration = await this.#configuration();
    const { state: expectedState, nonce: expectedNonce, verifier: pkceCodeVerifier, redirectUri } = secrets;
    const returned = new URL(redirectUri);
    returned.search = query.toString();
    try {
      const checks = { expectedState, expectedNonce, pkceCodeVerifier, idTokenExpected: true };
      const tokens = await authorizationCodeGrant(configuration, returned, checks);
      const claims = tokens.claims();
      if (!claims) throw new Error("no ID token");
      // The system clock, which the library also uses to check that the token has not expired.
      requireOwnToken(claims, this.#options.settings.clientId, systemClock.nowSeconds());
      // Many providers return the address only from the userinfo endpoint (OpenID Connect Core, 5.4).
      const hasMore = claims["email"] === undefined && configuration.serverMetadata().userinfo_endpoint != null;
      const more = hasMore ? await fetchUserInfo(configuration, tokens.access_token, claims.sub) : {};
      return identityOf(claims, more);
    } catch (error) {
      // Keys or endpoints may have changed, so the next attempt reads the metadata again.
      this.#known = undefined;
      throw this.#fault(error);
    }
  }

  /** Throws `service_unavailable` if the provider's metadata cannot be read. */
  async checkConnection(): Promise<void> {
    await this.#configuration();
  }

  async #configuration(): Promise<Configuration> {
    const now = this.#options.clock.monotonicMs();
    if (!this.#known || this.#known.endsMs <= now) {
      this.#known = { configuration: this.#discover(), endsMs: now + freshMs };
    }
    const known = this.#known;
    try {
      return await known.configuration;
    } catch (error) {
      if (this.#known === known) this.#known = undefined;
      throw this.#unreachable(error);
    }
  }

  async #discover(): Promise<Configuration> {
    const oidc = await import("openid-client");
    const { settings, timeoutMs = defaultTimeoutMs } = this.#options;
    const { clientId, clientSecret: secret } = settings;
    const issuer = new URL(settings.issuer);
    const isLocal = issuer.protocol === "http:";
    const found = await oidc.discovery(issuer, clientId, undefined, oidc.None(), {
      timeout: timeoutMs / 1000,
      [oidc.customFetch]: boundedFetch(isLocal),
      execute: isLocal ? [oidc.allowInsecureRequests] : [],
    });
    const server = found.serverMetadata();
    requireEndpoints(server, isLocal);
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const basic = methods.includes("client_secret_basic") ? oidc.ClientSecretBasic : oidc.ClientSecretPost;
    const authentication = secret === undefined ? oidc.None() : basic(secret);
    const metadata = { [oidc.clockTolerance]: toleranceSeconds };
    const configuration = new oidc.Configuration(server, clientId, metadata, authentication);
    configuration.timeout = timeoutMs / 1000;
    configuration[oidc.customFetch] = boundedFetch(isLocal);
    if (isLocal) oidc.allowInsecureRequests(configuration);
    // The signature of the ID token is checked despite TLS, because a proxy may end the TLS connection.
    oidc.enableNonRepudiationChecks(configuration);
    return configuration;
  }

  #unreachable(error: unknown): GatewayError {
    const { name } = this.#options.settings;
    const message = `${name} cannot be reached for signing in at the moment. Try again in a minute, or sign in another way.`;
    return new GatewayError("service_unavailable", message, {
      detail: `sso: ${reasonOf(error)}`,
      retryAfterSeconds: 60,
    });
  }

  /** Converts a sign-in error to a GatewayError. The provider's own text is logged only if it is an error code. */
  #fault(error: unknown): GatewayError {
    const { name } = this.#options.settings;
    const reason = reasonOf(error);
    if (/TIMEOUT|timeout|ECONN|ENOTFOUND|ConnectionRefused|FailedToOpenSocket/.test(reason))
      return this.#unreachable(error);
    if (reason === "access_denied") {
      const message = `${name} did not sign you in: it was declined there. Try again, or sign in another way.`;
      return forbidden(message, { detail: `sso: ${reason}` });
    }
    const message = `The answer of ${name} could not be accepted. Try again; if it stays so, tell whoever runs this server.`;
    return new GatewayError("upstream_error", message, { detail: `sso: ${reason}` });
  }
}

/**
 * Performs the checks that the library leaves to its users (OpenID Connect Core, 3.1.3.7, rules 4, 5 and 10). A token
 * for another client, or with a time of issue in the future, does not belong to this sign-in.
 */
function requireOwnToken(claims: Readonly<Record<string, unknown>>, clientId: string, nowSeconds: number): void {
  const { azp, iat } = claims;
  if (azp !== undefined && azp !== clientId) throw new Error("an ID token for another client");
  if (typeof iat !== "number" || iat > nowSeconds + maxAheadSeconds) throw new Error("an ID token of the future");
}

/** Checks the endpoints in the metadata. Browsers are sent to one of them, and secrets to the others. */
function requireEndpoints(metadata: Readonly<Record<string, unknown>>, isLocal: boolean): void {
  const needed = ["authorization_endpoint", "token_endpoint", "jwks_uri"];
  // Some providers write null for an endpoint that they lack.
  const optional = ["userinfo_endpoint"].filter((name) => metadata[name] != null);
  for (const name of [...needed, ...optional]) {
    const endpoint = metadata[name];
    if (typeof endpoint !== "string" || !URL.canParse(endpoint) || !isAllowed(new URL(endpoint), isLocal)) {
      throw new Error(`${name} is no https address`);
    }
  }
}

function isAllowed({ protocol, hostname }: URL, isLocal: boolean): boolean {
  return protocol === "https:" || (protocol === "http:" && isLocal && isLoopback(hostname));
}

/**
 * Returns the identity from the ID token's claims and the userinfo answer (`more`). The address and its verification
 * come from the same source, because each source vouches only for its own address.
 */
function identityOf(
  claims: Readonly<Record<string, unknown>> & { iss: string; sub: string },
  more: Readonly<Record<string, unknown>>,
): ProvenIdentity {
  const { iss, sub } = claims;
  const { email, email_verified: verified } = claims["email"] === undefined ? more : claims;
  const name = claims["name"] ?? more["name"];
  // Some providers send the flag as text.
  const isVerified = typeof email === "string" && (verified === true || verified === "true");
  return {
    issuer: iss,
    subject: sub,
    verifiedEmail: isVerified ? email : undefined,
    name: typeof name === "string" ? name : undefined,
  };
}

/**
 * Returns a `fetch` that limits the size of an answer. It follows no redirect, so that only the provider gets the code
 * or secret, and a provider on this machine cannot redirect to plain http elsewhere.
 */
function boundedFetch(isLocal: boolean) {
  return async (url: string, options: CustomFetchOptions): Promise<Response> => {
    if (!isAllowed(new URL(url), isLocal)) throw new Error("an endpoint by plain http");
    const { method, headers: sent, signal, body } = options;
    // The library's requests have a form as their body, or none.
    const form = body instanceof URLSearchParams ? { body } : {};
    const response = await fetch(url, { method, headers: sent, redirect: "manual", signal: signal ?? null, ...form });
    const bytes = await readAtMost(response, maxAnswerLength);
    const { status, headers } = response;
    return new Response(bytes.length === 0 ? null : bytes, { status, headers });
  };
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
}

async function readAtMost(response: Response, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the rest of the answer.
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > most) throw new Error("an answer that is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Returns the `error` code of the provider's error answer, such as `access_denied`, else the library's or system's
 * code, or the error's name.
 */
function reasonOf(error: unknown): string {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    for (const name of ["error", "code"] as const) {
      const value: unknown = Reflect.get(at, name);
      if (typeof value === "string" && value !== "OAUTH_TIMEOUT" && /^[\w-]{1,60}$/.test(value)) return value;
    }
    if (at.name === "TimeoutError") return "timeout";
  }
  return error instanceof Error && /^\w{1,60}$/.test(error.name) ? error.name : "unknown";
}
