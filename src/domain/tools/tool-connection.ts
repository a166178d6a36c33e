// People's accounts at MCP servers: connected once, sealed, refreshed, and ended with the membership.
import type { AuditEvent } from "../audit.ts";

/** Times in Unix seconds. */
export interface ToolConnection {
  readonly id: string;
  readonly server: string;
  readonly accountId: string;
  readonly personId: string;
  /** The membership with which the connection ends. */
  readonly membershipId: string;
  /** The authorization server that issued the tokens. */
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** Scopes that the server has asked for in addition, to be requested when the person connects again. */
  readonly wantedScopes: readonly string[];
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** The reason why the person has to connect again; null: the connection works. */
  readonly brokenBecause: string | null;
}

/** The acting person, as a member of one account. */
export interface ToolPerson {
  readonly accountId: string;
  readonly personId: string;
}

/** A person's connections, as requests to servers use them. */
export interface ToolConnections {
  /**
   * Returns an id that changes when the person connects again, perhaps with another account. Undefined: not connected.
   */
  connectionId(server: string, of: ToolPerson): Promise<string | undefined>;
  /**
   * Returns a valid token, refreshed if needed once for all concurrent callers in all processes. Undefined without a
   * working connection: the caller is told where to connect. Rejects with `service_unavailable`.
   */
  accessToken(server: string, of: ToolPerson): Promise<string | undefined>;
  /** Notes that the server refused the token with 401. Then `accessToken` returns another token, or none. */
  refused(server: string, of: ToolPerson, token: string): Promise<void>;
  /** Notes that the server needs these further scopes, to be requested at the next connect. */
  insufficient(server: string, of: ToolPerson, token: string, scope: string): Promise<void>;
}

/** A connection with its tokens. */
export interface StoredToolConnection extends ToolConnection {
  /** The server's URL when the person connected: the tokens are sent nowhere else. */
  readonly url: string;
  /** Sealed; only `mcp/connections` knows the content. */
  readonly sealed: string;
  /** When the access token expires; null: unknown. */
  readonly expiresAt: number | null;
  /** When the access token was issued. */
  readonly renewedAt: number;
}

/** The members that a renewal changes. */
export type RenewedTokens = Pick<StoredToolConnection, "sealed" | "expiresAt" | "renewedAt" | "scopes">;

/** A client that an authorization server registered for the gateway. */
export interface RegisteredToolClient {
  readonly server: string;
  readonly issuer: string;
  readonly sealed: string;
  readonly createdAt: number;
}

export interface ToolConnectionStore {
  find(server: string, of: ToolPerson): Promise<StoredToolConnection | undefined>;
  /** Returns a person's connections ordered by server. */
  listOf(person: ToolPerson): Promise<StoredToolConnection[]>;
  /** Returns connections of all people, optionally at one server, newest first, after the connection `after`. */
  list(
    filter: { server?: string | undefined },
    page: { after: string | undefined; limit: number },
  ): Promise<StoredToolConnection[]>;
  /** Replaces an earlier connection. Returns false without a change if the membership has ended. */
  put(connection: StoredToolConnection, event: AuditEvent): Promise<boolean>;
  remove(connection: Pick<ToolConnection, "id">, event: AuditEvent): Promise<boolean>;
  /**
   * Claims the renewal of the found connection until `untilSeconds`. Returns false if another process has a claim, or
   * the connection was renewed, replaced or ended: a rotating refresh token must not be used twice.
   */
  claim(
    found: Pick<StoredToolConnection, "id" | "sealed">,
    claim: { name: string; nowSeconds: number; untilSeconds: number },
  ): Promise<boolean>;
  /** Ends the claim with its result. Returns false if the connection or the claim does not exist any more. */
  settle(
    id: string,
    claimName: string,
    outcome: RenewedTokens | { brokenBecause: string } | "unchanged",
  ): Promise<boolean>;
  /** Marks the connection's token as expired, if the connection is unchanged since `found`. */
  expire(found: Pick<StoredToolConnection, "id" | "sealed">, nowSeconds: number): Promise<void>;
  /** Marks the connection as broken because it cannot be renewed, if it is unchanged since `found`. */
  breakOff(found: Pick<StoredToolConnection, "id" | "sealed">, because: string): Promise<void>;
  used(id: string, nowSeconds: number): Promise<void>;
  /** Replaces the wanted scopes, if the connection is unchanged since `found`. */
  want(found: Pick<StoredToolConnection, "id" | "sealed">, scopes: readonly string[]): Promise<void>;

  findClient(server: string, issuer: string): Promise<RegisteredToolClient | undefined>;
  putClient(client: RegisteredToolClient): Promise<void>;
}
