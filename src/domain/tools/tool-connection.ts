// People's accounts at MCP servers. Each person connects an account once. Its tokens are sealed and refreshed, and end
// with the membership.
import type { AuditEvent } from "../audit.ts";

/** Times in Unix seconds. */
export interface ToolConnection {
  readonly id: string;
  readonly server: string;
  readonly accountId: string;
  readonly personId: string;
  /** The membership through which the person connected. The connection ends with it. */
  readonly membershipId: string;
  /** The authorization server that issued the tokens. */
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** Further scopes that the MCP server has required. They are requested when the person connects again. */
  readonly wantedScopes: readonly string[];
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** The reason why the person has to connect again. Null while the connection works. */
  readonly brokenBecause: string | null;
}

/** The acting person, as a member of one account. */
export interface ToolPerson {
  readonly accountId: string;
  readonly personId: string;
}

/** A person's connections, for requests to MCP servers. */
export interface ToolConnections {
  /**
   * Returns the id of the person's connection, or undefined. If the person connects again, perhaps with another
   * account, the id changes.
   */
  connectionId(server: string, of: ToolPerson): Promise<string | undefined>;
  /**
   * Returns a valid access token. If it ends soon, it is refreshed once for all concurrent callers in all processes.
   * Returns undefined if there is no working connection. Rejects with `service_unavailable`.
   */
  accessToken(server: string, of: ToolPerson): Promise<string | undefined>;
  /**
   * Records that the server refused the token with 401. After this, `accessToken` returns another token, or undefined.
   */
  refused(server: string, of: ToolPerson, token: string): Promise<void>;
  /** Records that the server requires these further scopes. They are requested when the person connects again. */
  insufficient(server: string, of: ToolPerson, token: string, scope: string): Promise<void>;
}

/** A connection with its tokens. */
export interface StoredToolConnection extends ToolConnection {
  /** The MCP server's URL at the time of connecting. The tokens are sent only to this URL. */
  readonly url: string;
  /** The sealed tokens. Only the code in `mcp/connections` can read them. */
  readonly sealed: string;
  /** When the access token expires. Null if unknown. */
  readonly expiresAt: number | null;
  /** When the access token was issued. */
  readonly renewedAt: number;
}

/** The members that a renewal changes. */
export type RenewedTokens = Pick<StoredToolConnection, "sealed" | "expiresAt" | "renewedAt" | "scopes">;

/** The OAuth client that an authorization server registered for the gateway. */
export interface RegisteredToolClient {
  readonly server: string;
  readonly issuer: string;
  readonly sealed: string;
  readonly createdAt: number;
}

export interface ToolConnectionStore {
  find(server: string, of: ToolPerson): Promise<StoredToolConnection | undefined>;
  /** Returns a person's connections in the order of their servers. */
  listOf(person: ToolPerson): Promise<StoredToolConnection[]>;
  /**
   * Returns connections of all people, newest first, beginning after the connection `after`. `server` restricts them to
   * one server.
   */
  list(
    filter: { server?: string | undefined },
    page: { after: string | undefined; limit: number },
  ): Promise<StoredToolConnection[]>;
  /**
   * Stores a connection, which replaces an earlier one. If the membership has ended, changes nothing and returns false.
   */
  put(connection: StoredToolConnection, event: AuditEvent): Promise<boolean>;
  remove(connection: Pick<ToolConnection, "id">, event: AuditEvent): Promise<boolean>;
  /**
   * Claims the refresh of a connection's tokens until `untilSeconds`, because a refresh token works only once. Returns
   * false if another process has claimed it, or the connection was refreshed, replaced or ended meanwhile.
   */
  claim(
    found: Pick<StoredToolConnection, "id" | "sealed">,
    claim: { name: string; nowSeconds: number; untilSeconds: number },
  ): Promise<boolean>;
  /** Ends a claim and stores its result. Returns false if the connection or the claim does not exist any more. */
  settle(
    id: string,
    claimName: string,
    outcome: RenewedTokens | { brokenBecause: string } | "unchanged",
  ): Promise<boolean>;
  /** Marks the access token as expired, if the connection has not changed since `found` was read. */
  expire(found: Pick<StoredToolConnection, "id" | "sealed">, nowSeconds: number): Promise<void>;
  /**
   * Marks the connection as broken because its tokens cannot be refreshed. Does nothing if the connection has changed
   * since `found` was read.
   */
  breakOff(found: Pick<StoredToolConnection, "id" | "sealed">, because: string): Promise<void>;
  used(id: string, nowSeconds: number): Promise<void>;
  /** Replaces the wanted scopes, if the connection has not changed since `found` was read. */
  want(found: Pick<StoredToolConnection, "id" | "sealed">, scopes: readonly string[]): Promise<void>;

  findClient(server: string, issuer: string): Promise<RegisteredToolClient | undefined>;
  putClient(client: RegisteredToolClient): Promise<void>;
}
