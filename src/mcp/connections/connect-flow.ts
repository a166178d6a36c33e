// Lets users connect their account at an MCP server: start, authorization, callback, and disconnection.
import { randomBytes } from "node:crypto";
import type { AuthorizationServerMetadata } from "@modelcontextprotocol/client";
import type { Clock } from "../../base/clock.ts";
import { forbidden, GatewayError, invalidRequest } from "../../base/errors.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import type { Principal } from "../../domain/principal.ts";
import type { McpServers } from "../../domain/tools/mcp-server.ts";
import type { StoredToolConnection, ToolConnectionStore, ToolPerson } from "../../domain/tools/tool-connection.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";
import { auditEvent, type Origin } from "../../policy/records/audit.ts";
import { type FoundAuthorization, issuerOf, type ToolAuthorization } from "./authorization.ts";
import { lifeOf, scopesOf } from "./person-connections.ts";
import { isConnectedTo, type PersonalServer, personalServer } from "./personal-server.ts";
import type { Revocations } from "./revocations.ts";
import type { ToolClient, ToolSeals } from "./tool-tokens.ts";

/** A connection that a user has started, stored under its OAuth `state`. */
export interface BegunConnection extends ToolPerson {
  membershipId: string;
  sessionId: string;
  server: string;
  url: string;
  /** The authorization server that the operator configured; null if there is none. */
  issuer: string | null;
  metadata: AuthorizationServerMetadata;
  resource: string;
  scope: string | null;
  client: ToolClient;
  verifier: string;
  redirectUri: string;
}

export interface ConnectFlowOptions {
  servers: Pick<McpServers, "find">;
  store: ToolConnectionStore;
  authorization: Pick<ToolAuthorization, "find" | "register" | "begin" | "redeem" | "revoke">;
  revocations: Pick<Revocations, "begin" | "revoke">;
  seals: ToolSeals;
  pending: {
    put(state: string, begun: BegunConnection): Promise<void>;
    take(state: string): Promise<BegunConnection | undefined>;
  };
  /** Returns the gateway's public URL, without a slash at the end. */
  issuer(): string;
  clock: Pick<Clock, "nowSeconds">;
}

/** The callback of clients that operators registered. */
export const sharedCallbackPath = "/oauth/tools/callback";
/**
 * The callback of clients that the gateway registered, one path for each MCP server. A malicious authorization server
 * of one MCP server could send the browser to the authorization server of another, to get the code from there. That
 * authorization server then refuses the redirect URI, because it belongs to another client (RFC 9700, 4.4). The path is
 * not below the shared path, because some authorization servers accept all paths below a registered one.
 */
export const callbackPath = "/oauth/tool-callbacks/:server";
export const clientDocumentPath = "/.well-known/oauth-client/:server";
/** Seconds that a user has to complete the flow. */
export const connectLifeSeconds = 900;

/** The user who starts a connection, the user's session, and the origin of the user's page. */
export interface Connecting {
  principal: Principal;
  personId: string;
  membershipId: string;
  sessionId: string;
  /** The origin under which the browser sees the gateway's pages. */
  pageOrigin: string;
}

export class ConnectFlow {
  readonly #options: ConnectFlowOptions;

  constructor(options: ConnectFlowOptions) {
    this.#options = options;
  }

  /**
   * Returns the OAuth client metadata document for an MCP server of this name, which need not exist. Some authorization
   * servers accept such a document instead of a registration (draft-ietf-oauth-client-id-metadata-document).
   */
  clientDocument(server: string) {
    const issuer = this.#options.issuer();
    return {
      client_id: `${issuer}${at(clientDocumentPath, server)}`,
      client_name: clientNameFor(server),
      client_uri: issuer,
      redirect_uris: [`${issuer}${at(callbackPath, server)}`],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }

  /**
   * Returns the URL for the browser. Throws `not_found`, `upstream_error` if the server's metadata is invalid, and
   * `service_unavailable`.
   */
  async begin(name: string, { principal, pageOrigin, ...by }: Connecting): Promise<string> {
    const { servers, authorization, pending } = this.#options;
    const known = servers.find(name);
    const server = personalServer(known);
    if (!known || !server || !mayUseServer(known, principal)) throw noServer();
    const of = { accountId: principal.account.id, personId: by.personId };
    const found = await authorization.find(server, await this.#widened(server, of));
    const isShared = server.credentials.clientId !== null;
    const redirectUri = `${pageOrigin}${isShared ? sharedCallbackPath : at(callbackPath, server.name)}`;
    const client = await this.#clientFor(server, found, redirectUri);
    const state = randomBytes(32).toString("base64url");
    const { url, verifier } = await authorization.begin(found, { client, redirectUri, state });
    await pending.put(state, {
      ...by,
      ...of,
      ...{ server: server.name, url: server.url, issuer: server.issuer },
      metadata: found.metadata,
      resource: found.resource,
      scope: found.scope ?? null,
      ...{ client, verifier, redirectUri },
    });
    return url;
  }

  /**
   * Completes the flow after the callback. Throws `invalid_request` if another session started it, `permission_denied`
   * if the user declined, and the errors of `begin`.
   */
  async complete(
    { path, query }: { path: string; query: URLSearchParams },
    signedIn: SignedIn | undefined,
    origin: Origin,
  ): Promise<StoredToolConnection> {
    const { servers, pending, authorization, store, seals } = this.#options;
    const state = once(query, "state");
    const begun = state === undefined ? undefined : await pending.take(state);
    // Require the same session: otherwise an attacker's link could connect the attacker's account to this user (RFC
    // 9700, 4.7).
    if (!begun || !signedIn || begun.sessionId !== signedIn.session.id) throw notBegun();
    const server = personalServer(servers.find(begun.server));
    if (server?.url !== begun.url || server.issuer !== begun.issuer) throw noServer();
    if (new URL(begun.redirectUri).pathname !== path) throw otherIssuer("redirect_uri");
    const iss = once(query, "iss");
    requireIssuer(iss, begun.metadata);
    if (query.has("error")) throw declined(once(query, "error"));
    const code = once(query, "code");
    if (code === undefined) throw notBegun();
    const given = await authorization.redeem(server, begun.metadata, { ...begun, code, iss });
    const { accountId, personId, membershipId, client, resource } = begun;
    const id = `tcn_${Bun.randomUUIDv7()}`;
    const issuer = issuerOf(begun.metadata, begun.issuer !== null);
    const { access_token: accessToken, refresh_token: refreshToken } = given;
    const tokens = { accessToken, refreshToken, client, issuer, resource };
    const connection: StoredToolConnection = {
      ...{ id, server: begun.server, accountId, personId, membershipId, issuer: issuer.issuer },
      scopes: scopesOf(given.scope ?? begun.scope ?? ""),
      wantedScopes: [],
      ...{ createdAt: origin.nowSeconds, lastUsedAt: null, brokenBecause: null, url: begun.url },
      sealed: seals.sealTokens(id, tokens),
      ...lifeOf(given, origin.nowSeconds),
    };
    const detail = { server: begun.server, issuer: issuer.issuer, scopes: connection.scopes };
    const event = auditEvent("tool_connection.created", signedIn, origin, { accountId, targetId: id, detail });
    let isKept = false;
    try {
      isKept = await store.put(connection, event);
    } finally {
      // If the tokens were not stored, revoke them now; later nobody could.
      if (!isKept) await authorization.revoke(begun.url, tokens);
    }
    if (isKept) return connection;
    throw forbidden("You are no member of that account any more, so nothing was connected.");
  }

  /**
   * Deletes a connection. Resolves to whether its tokens were also revoked at the authorization server. Throws
   * `not_found`.
   */
  async end(name: string, of: ToolPerson, principal: Principal, origin: Origin): Promise<boolean> {
    const { store, revocations } = this.#options;
    const found = await store.find(name, of);
    if (!found) throw new GatewayError("not_found", "You have no account connected at a server of this name.");
    const detail = { server: found.server, person_id: found.personId };
    const about = { accountId: found.accountId, targetId: found.id, detail };
    await store.remove(found, auditEvent("tool_connection.deleted", principal, origin, about));
    return await revocations.revoke(found);
  }

  /**
   * Prepares to revoke all connections of these users. Call the returned function after the connections were deleted.
   */
  async farewell(people: readonly ToolPerson[]): Promise<() => void> {
    const { store, revocations } = this.#options;
    const found = (await Promise.all(people.map((of) => store.listOf(of)))).flat();
    return () => revocations.begin(found);
  }

  /**
   * Returns the scopes to request: the granted ones and those that the server additionally required. Empty if it
   * required none.
   */
  async #widened(server: PersonalServer, of: ToolPerson): Promise<readonly string[]> {
    const found = await this.#options.store.find(server.name, of);
    return found && isConnectedTo(server, found) && found.wantedScopes.length > 0
      ? [...found.scopes, ...found.wantedScopes]
      : [];
  }

  async #clientFor(server: PersonalServer, found: FoundAuthorization, redirectUri: string): Promise<ToolClient> {
    const { clientId, clientSecret } = server.credentials;
    if (clientId !== null) return { clientId, ...(clientSecret === null ? {} : { clientSecret }) };
    const document = this.clientDocument(server.name);
    const { metadata } = found;
    const takesDocuments = metadata.client_id_metadata_document_supported === true;
    if (takesDocuments && document.client_id.startsWith("https:") && document.redirect_uris.includes(redirectUri)) {
      return { clientId: document.client_id };
    }
    return this.#registered(server, found, redirectUri);
  }

  /**
   * Returns the OAuth client for this server, and registers one if needed. All users share it, because a client
   * identifies no user.
   */
  async #registered(server: PersonalServer, found: FoundAuthorization, redirectUri: string): Promise<ToolClient> {
    const { store, seals, authorization, clock, issuer } = this.#options;
    const clientOwner = { server: server.name, issuer: found.metadata.issuer };
    const stored = await store.findClient(clientOwner.server, clientOwner.issuer);
    const kept = stored && seals.openClient(clientOwner, stored.sealed);
    const nowSeconds = clock.nowSeconds();
    // The registration must stay valid while a user completes the flow.
    const lasts = kept && (kept.endsAt === null || kept.endsAt > nowSeconds + connectLifeSeconds);
    if (kept && lasts && kept.redirectUri === redirectUri) return kept;
    const client = await authorization.register(server, found, {
      ...{ redirectUri, name: clientNameFor(server.name), uri: issuer() },
    });
    const sealed = seals.sealClient(clientOwner, { ...client, redirectUri });
    await store.putClient({ ...clientOwner, sealed, createdAt: nowSeconds });
    return client;
  }
}

/** Throws unless the response comes from the authorization server that was asked, even if it is an error (RFC 9207). */
function requireIssuer(iss: string | undefined, metadata: AuthorizationServerMetadata): void {
  const isRequired = metadata.authorization_response_iss_parameter_supported === true;
  if (iss === metadata.issuer || (iss === undefined && !isRequired)) return;
  throw otherIssuer("iss");
}

function otherIssuer(detail: string): GatewayError {
  return new GatewayError(
    "upstream_error",
    "The answer came from another authorization server than the one that was asked, so nothing was connected. Try again; if it stays so, tell whoever runs this server.",
    { detail: `tool connection: ${detail}` },
  );
}

function at(path: typeof callbackPath | typeof clientDocumentPath, server: string): string {
  return path.replace(":server", server);
}

/** Names the server, so that the consent page of another server's authorization server shows who asks. */
function clientNameFor(server: string): string {
  return `Headrace (${server})`;
}

function once(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  return values.length === 1 ? values[0] : undefined;
}

function declined(code: string | undefined): GatewayError {
  const known = code !== undefined && /^[a-z_]{1,40}$/.test(code) ? code : "unknown";
  const message =
    known === "access_denied"
      ? "You, or the server, declined it there, so nothing was connected."
      : `The server's authorization server refused it (${known}), so nothing was connected.`;
  return forbidden(message, { detail: `tool connection: ${known}` });
}

function notBegun(): GatewayError {
  return invalidRequest(
    "This was not begun in this browser, took too long, or was finished already. Connect the account once more.",
    { detail: "tool connection: state" },
  );
}

function noServer(): GatewayError {
  return new GatewayError("not_found", "There is no MCP server of this name at which people have their own accounts.");
}
