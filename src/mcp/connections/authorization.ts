// OAuth client for MCP servers: finds the authorization server, registers, and gets, refreshes and revokes tokens.
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthProtectedResourceMetadata,
  OAuthTokens,
} from "@modelcontextprotocol/client";
import { type EgressRules, isLoopbackHost, type Resolve } from "../../egress/addresses.ts";
import { type EgressFetch, egressFetch } from "../../egress/fetch.ts";
import { fault, orFault } from "./authorization-fault.ts";
import { mayAuthorize, type PersonalServer, type Target } from "./personal-server.ts";
import type { ToolClient, ToolIssuer, ToolTokens } from "./tool-tokens.ts";

export interface ToolAuthorizationOptions {
  rules: EgressRules;
  resolve: Resolve;
  /** Certificates (PEM) to trust instead of the system's; for tests. */
  ca?: string;
}

/** Metadata of an MCP server and of its authorization server. */
export interface FoundAuthorization {
  readonly metadata: AuthorizationServerMetadata;
  readonly resource: string;
  readonly scope: string | undefined;
}

/** Tokens of a user, as the authorization server issued them. */
export type GivenTokens = Pick<OAuthTokens, "access_token" | "refresh_token" | "expires_in" | "scope">;

const timeoutMs = 10_000;
/** Maximum bytes of a metadata or token response. Usual responses have a few thousand bytes. */
const maxBytes = 262_144;
const maxTokenLength = 16_384;
const sdk = () => import("@modelcontextprotocol/client");

export class ToolAuthorization {
  readonly #options: ToolAuthorizationOptions;

  constructor(options: ToolAuthorizationOptions) {
    this.#options = options;
  }

  /**
   * Finds the authorization server. `more` are additional scopes, unless the operator configured the scopes. Throws
   * `upstream_error` for invalid metadata, or for a private address that the operator did not configure.
   */
  async find(server: PersonalServer, more: readonly string[] = []): Promise<FoundAuthorization> {
    const { url, credentials } = server;
    const fetchFn = this.#fetchFor(server);
    return orFault("find", async () => {
      const { checkResourceAllowed, discoverAuthorizationServerMetadata } = await sdk();
      const challenge = await challengeOf(url, fetchFn);
      const described = await describedBy(server, challenge, fetchFn);
      const { resource, authorization_servers: issuers = [], scopes_supported: offered } = described;
      if (!checkResourceAllowed({ requestedResource: url, configuredResource: resource })) {
        throw fault("It says that it is another server.", "other_resource");
      }
      const issuer = issuers.find((one) => mayAuthorize(server, one));
      if (issuer === undefined) {
        throw issuers.length === 0
          ? fault("It names no authorization server.", "no_issuer")
          : fault("It names another authorization server than whoever runs this server did.", "other_issuer");
      }
      const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn });
      if (!metadata) throw fault("Its authorization server does not describe itself.", "no_metadata");
      this.#requireEndpoints(server, metadata);
      const asked = challenge.scope?.split(" ") ?? offered;
      const all = more.length > 0 ? [...new Set([...(asked ?? []), ...more])] : asked;
      const scopes = credentials.scopes ?? withRefresh(all, metadata);
      return { metadata, resource, scope: scopes && scopes.length > 0 ? scopes.join(" ") : undefined };
    });
  }

  /** Registers a client (RFC 7591). Throws `upstream_error`. */
  register(
    server: PersonalServer,
    { metadata }: FoundAuthorization,
    client: { redirectUri: string; name: string; uri: string },
  ): Promise<ToolClient & { endsAt: number | null }> {
    return orFault("register", async () => {
      const { registerClient } = await sdk();
      if (metadata.registration_endpoint === undefined) {
        throw fault(
          "Its authorization server registers no clients: whoever runs this server has to register one there, and to set oauth.client_id of the MCP server.",
          "no_registration",
        );
      }
      const registered = await registerClient(metadata.issuer, {
        metadata,
        fetchFn: this.#fetchFor(server),
        clientMetadata: {
          client_name: client.name,
          client_uri: client.uri,
          redirect_uris: [client.redirectUri],
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
          token_endpoint_auth_method: authMethodFor(metadata),
          // Loopback redirect URIs are not allowed for web applications (OpenID Connect Registration, 2).
          application_type: isLoopbackHost(new URL(client.redirectUri)) ? "native" : "web",
        },
      });
      const { client_id: clientId, client_secret: clientSecret, client_secret_expires_at: endsAt } = registered;
      return { clientId, clientSecret, endsAt: endsAt || null };
    });
  }

  /** Returns the URL for the browser, and the PKCE verifier for the callback. */
  begin(
    { metadata, resource, scope }: FoundAuthorization,
    { client, redirectUri, state }: { client: ToolClient; redirectUri: string; state: string },
  ): Promise<{ url: string; verifier: string }> {
    return orFault("begin", async () => {
      const { startAuthorization } = await sdk();
      const { authorizationUrl, codeVerifier } = await startAuthorization(metadata.issuer, {
        ...{ metadata, resource, state },
        clientInformation: informationOf(client),
        redirectUrl: redirectUri,
        ...(scope === undefined ? {} : { scope }),
      });
      return { url: authorizationUrl.href, verifier: codeVerifier };
    });
  }

  /**
   * Exchanges the code for tokens. The callback's `iss` must match the metadata (RFC 9207). Throws `upstream_error`.
   */
  redeem(
    server: Target,
    metadata: AuthorizationServerMetadata,
    given: {
      client: ToolClient;
      code: string;
      iss: string | undefined;
      verifier: string;
      redirectUri: string;
      resource: string;
    },
  ): Promise<GivenTokens> {
    return orFault("redeem", async () => {
      const { exchangeAuthorization } = await sdk();
      const tokens = await exchangeAuthorization(metadata.issuer, {
        metadata,
        clientInformation: informationOf(given.client),
        authorizationCode: given.code,
        ...(given.iss === undefined ? {} : { iss: given.iss }),
        codeVerifier: given.verifier,
        redirectUri: given.redirectUri,
        resource: given.resource,
        fetchFn: this.#fetchFor(server),
      });
      return checked(tokens);
    });
  }

  /**
   * Refreshes the tokens. Resolves to `refused` if the authorization server permanently refuses. Throws
   * `upstream_error`.
   */
  async renew(serverUrl: string, tokens: ToolTokens & { refreshToken: string }): Promise<GivenTokens | "refused"> {
    const { refreshAuthorization, OAuthError, OAuthErrorCode } = await sdk();
    const final: readonly string[] = [
      OAuthErrorCode.InvalidGrant,
      OAuthErrorCode.InvalidClient,
      OAuthErrorCode.UnauthorizedClient,
    ];
    return orFault("renew", async () => {
      try {
        const renewed = await refreshAuthorization(tokens.issuer.issuer, {
          metadata: metadataOf(tokens.issuer),
          clientInformation: informationOf(tokens.client),
          refreshToken: tokens.refreshToken,
          resource: tokens.resource,
          fetchFn: this.#fetchFor(targetOf(serverUrl, tokens.issuer)),
        });
        return checked(renewed);
      } catch (error) {
        if (error instanceof OAuthError && final.includes(error.code)) return "refused";
        throw error;
      }
    });
  }

  /** Revokes the tokens at the authorization server (RFC 7009). Resolves to whether it did. Never rejects. */
  async revoke(serverUrl: string, { issuer, client, refreshToken, accessToken }: ToolTokens): Promise<boolean> {
    if (issuer.revocationEndpoint === undefined) return false;
    try {
      const { selectClientAuthMethod } = await sdk();
      const method = selectClientAuthMethod(informationOf(client), [...issuer.authMethods]);
      const body = new URLSearchParams({ token: refreshToken ?? accessToken });
      body.set("token_type_hint", refreshToken === undefined ? "access_token" : "refresh_token");
      const headers: Record<string, string> = { "content-type": "application/x-www-form-urlencoded" };
      if (method === "client_secret_basic") headers["authorization"] = basic(client);
      else body.set("client_id", client.clientId);
      if (method === "client_secret_post" && client.clientSecret !== undefined) {
        body.set("client_secret", client.clientSecret);
      }
      const fetchFn = this.#fetchFor(targetOf(serverUrl, issuer));
      return (await fetchFn(issuer.revocationEndpoint, { method: "POST", headers, body })).ok;
    } catch {
      return false;
    }
  }

  /**
   * Returns which addresses requests may reach. Private addresses are allowed for the configured servers, loopback only
   * if the MCP server itself is on loopback.
   */
  #rulesFor({ url, issuer }: Target): EgressRules {
    return {
      allowLoopback: this.#options.rules.allowLoopback || isLoopbackHost(new URL(url)),
      named: [url, ...(issuer === null ? [] : [issuer])].map((one) => new URL(one).origin),
    };
  }

  #fetchFor(target: Target): EgressFetch {
    return egressFetch({ ...this.#options, rules: this.#rulesFor(target), timeoutMs, maxBytes });
  }

  /** Throws unless all endpoints use https, because browsers and secrets are sent there. Loopback may use http. */
  #requireEndpoints(target: Target, metadata: AuthorizationServerMetadata): void {
    const { allowLoopback } = this.#rulesFor(target);
    const { authorization_endpoint, token_endpoint, registration_endpoint } = metadata;
    const { revocationEndpoint } = issuerOf(metadata, false);
    for (const endpoint of [authorization_endpoint, token_endpoint, registration_endpoint, revocationEndpoint]) {
      if (endpoint === undefined) continue;
      const url = new URL(endpoint);
      if (url.protocol === "https:" || (allowLoopback && url.protocol === "http:" && isLoopbackHost(url))) continue;
      throw fault("Its authorization server is not reached by https.", "not_https");
    }
  }
}

/** Returns the part of the metadata that is stored with the tokens. */
export function issuerOf(metadata: AuthorizationServerMetadata, isNamed: boolean): ToolIssuer {
  const { issuer, token_endpoint: tokenEndpoint, token_endpoint_auth_methods_supported: authMethods = [] } = metadata;
  const revocationEndpoint = "revocation_endpoint" in metadata ? metadata.revocation_endpoint : undefined;
  return {
    ...{ issuer, isNamed, tokenEndpoint, authMethods },
    ...(typeof revocationEndpoint === "string" ? { revocationEndpoint } : {}),
  };
}

function targetOf(url: string, { issuer, isNamed }: ToolIssuer): Target {
  return { url, issuer: isNamed ? issuer : null };
}

function metadataOf({ issuer, tokenEndpoint, authMethods }: ToolIssuer): AuthorizationServerMetadata {
  return {
    issuer,
    token_endpoint: tokenEndpoint,
    token_endpoint_auth_methods_supported: [...authMethods],
    authorization_endpoint: tokenEndpoint,
    response_types_supported: ["code"],
  };
}

function informationOf({ clientId, clientSecret }: ToolClient): OAuthClientInformationMixed {
  return { client_id: clientId, ...(clientSecret === undefined ? {} : { client_secret: clientSecret }) };
}

function basic({ clientId, clientSecret = "" }: ToolClient): string {
  const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}

/** Returns the `WWW-Authenticate` challenge to a request without a token. It may name the metadata URL and scopes. */
async function challengeOf(url: string, fetchFn: EgressFetch) {
  const { extractWWWAuthenticateParams } = await sdk();
  const response = await fetchFn(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  });
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
  return {
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/**
 * Returns the protected resource metadata (RFC 9728). Servers of revision 2025-03-26 have none and are their own
 * authorization server.
 */
async function describedBy(
  { url, issuer }: Target,
  challenge: { resourceMetadataUrl?: URL },
  fetchFn: EgressFetch,
): Promise<OAuthProtectedResourceMetadata> {
  const { discoverOAuthProtectedResourceMetadata } = await sdk();
  let status = 0;
  try {
    return await discoverOAuthProtectedResourceMetadata(url, challenge, async (to, init) => {
      const response = await fetchFn(to, init);
      status = response.status;
      return response;
    });
  } catch (error) {
    if (status !== 404 || challenge.resourceMetadataUrl !== undefined) throw error;
    return { resource: url, authorization_servers: [issuer ?? new URL(url).origin] };
  }
}

/**
 * Prefers a public client with PKCE, which has no secret that could leak; some authorization servers require a secret.
 */
function authMethodFor({ token_endpoint_auth_methods_supported: known }: AuthorizationServerMetadata): string {
  if (known === undefined || known.includes("none")) return "none";
  return known.find((method) => method === "client_secret_basic" || method === "client_secret_post") ?? "none";
}

/** Adds the scope `offline_access` if supported, because OpenID providers issue no refresh token without it. */
function withRefresh(scopes: readonly string[] | undefined, { scopes_supported: known }: AuthorizationServerMetadata) {
  const scope = "offline_access";
  if (!known?.includes(scope) || scopes?.includes(scope)) return scopes;
  return [...(scopes ?? []), scope];
}

function checked(tokens: OAuthTokens): GivenTokens {
  if (tokens.token_type.toLowerCase() !== "bearer") throw fault("It gives tokens of an unknown type.", "token_type");
  // The access token becomes a header value, which allows only visible ASCII characters.
  const isFine = /^[\x21-\x7e]+$/.test(tokens.access_token) && tokens.access_token.length <= maxTokenLength;
  const renewal = tokens.refresh_token ?? "";
  if (!isFine || renewal.length > maxTokenLength) throw fault("It gives tokens that cannot be sent.", "token_form");
  return tokens;
}
