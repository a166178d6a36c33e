// Accounts of people at MCP servers: connected once, sealed, refreshed, and ended with the membership.
import type { AuditEvent } from "../audit.ts";

/** Times in Unix seconds. */
export interface ToolConnection {
  readonly id: string;
  readonly server: string;
  readonly accountId: string;
  readonly personId: string;
  /** The membership with which it ends. */
  readonly membershipId: string;
  /** The authorization server that gave the tokens. */
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** Those that the server has wanted since beyond them: they are asked for as well when the person connects again. */
  readonly wantedScopes: readonly string[];
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** Why it works no more until the person connects again; null: it does. */
  readonly brokenBecause: string | null;
}

/** Who acts: one person, as a member of one account. */
export interface ToolPerson {
  readonly accountId: string;
  readonly personId: string;
}

/** What of a person's connection a request to the server carries. */
export interface ToolConnections {
  /** Another one once the person has connected an account anew, which may be another account; undefined: there is none. */
  connectionId(server: string, of: ToolPerson): Promise<string | undefined>;
  /**
   * A token that is good for now, refreshed where it has to be, by one of all who want it at once, in whatever process. Undefined
   * where the person has connected none that works: the caller is told where to do that. Rejects with `service_unavailable`.
   */
  accessToken(server: string, of: ToolPerson): Promise<string | undefined>;
  /** The server refused it with 401. Once it resolves, `accessToken` gives another one, or none. */
  refused(server: string, of: ToolPerson, token: string): Promise<void>;
  /** The server wants these scopes beyond what the token has: they are asked for when the person connects again. */
  insufficient(server: string, of: ToolPerson, token: string, scope: string): Promise<void>;
}

/** A connection with its tokens. */
export interface StoredToolConnection extends ToolConnection {
  /** Where the server was as the person connected: the tokens go nowhere else. */
  readonly url: string;
  /** Sealed; what is in it is the business of `mcp/connections`. */
  readonly sealed: string;
  /** When the access token ends; null: its server does not say. */
  readonly expiresAt: number | null;
  /** When the access token was given. */
  readonly renewedAt: number;
}

/** What a renewal changes. */
export type RenewedTokens = Pick<StoredToolConnection, "sealed" | "expiresAt" | "renewedAt" | "scopes">;

/** A client as an authorization server registered it for us. */
export interface RegisteredToolClient {
  readonly server: string;
  readonly issuer: string;
  readonly sealed: string;
  readonly createdAt: number;
}

export interface ToolConnectionStore {
  find(server: string, of: ToolPerson): Promise<StoredToolConnection | undefined>;
  /** In the order of their servers. */
  listOf(person: ToolPerson): Promise<StoredToolConnection[]>;
  /** All people's, or those at one server; newest first, those after the connection `after`. */
  list(
    filter: { server?: string | undefined },
    page: { after: string | undefined; limit: number },
  ): Promise<StoredToolConnection[]>;
  /** In the place of an earlier one; false, with nothing written, where the membership has ended. */
  put(connection: StoredToolConnection, event: AuditEvent): Promise<boolean>;
  remove(connection: Pick<ToolConnection, "id">, event: AuditEvent): Promise<boolean>;
  /**
   * Takes the right to renew what was found, until `untilSeconds`, for the one who names `claim`. False where another one has it,
   * or it was renewed, replaced or ended meanwhile: a refresh token that rotates must not be used twice.
   */
  claim(
    found: Pick<StoredToolConnection, "id" | "sealed">,
    claim: { name: string; nowSeconds: number; untilSeconds: number },
  ): Promise<boolean>;
  /** Ends the claim with what came of it; false where the connection or the claim is no more. */
  settle(
    id: string,
    claimName: string,
    outcome: RenewedTokens | { brokenBecause: string } | "unchanged",
  ): Promise<boolean>;
  /** Its token counts as expired from now on, where it is still the same. */
  expire(found: Pick<StoredToolConnection, "id" | "sealed">, nowSeconds: number): Promise<void>;
  /** For one that cannot be renewed: where it is still the same. */
  breakOff(found: Pick<StoredToolConnection, "id" | "sealed">, because: string): Promise<void>;
  used(id: string, nowSeconds: number): Promise<void>;
  /** In the place of what was wanted before; where it is still the same. */
  want(found: Pick<StoredToolConnection, "id" | "sealed">, scopes: readonly string[]): Promise<void>;

  findClient(server: string, issuer: string): Promise<RegisteredToolClient | undefined>;
  putClient(client: RegisteredToolClient): Promise<void>;
}
