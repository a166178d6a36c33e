// Accounts of people at servers of tools: connected once, sealed, refreshed, and ended with the membership.

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
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** Why it works no more until the person connects again; null: it does. */
  readonly brokenBecause: string | null;
}

/** What of a person's connection a request to the server carries. */
export interface ToolConnections {
  /**
   * A token that is good for now, refreshed where it has to be, by one of all who want it at once. Undefined where the person has
   * connected none: the caller is told where to do that.
   */
  accessToken(server: string, of: { accountId: string; personId: string }): Promise<string | undefined>;
  /** The server refused it. */
  refused(server: string, of: { accountId: string; personId: string }, token: string): void;
}
