// The address of the server and the credential for it.

export interface Connection {
  /** The address of the API with `/v1`, without a trailing slash. */
  baseUrl: string;
  /**
   * The credential to send. For a login, this is the access token at the start of the command; `login` returns the
   * current token.
   */
  apiKey: string;
  /** The source of the key, for messages. For a login: `your login at …`. */
  keySource: string;
  login?: FreshTokens;
  /** The data directory whose credentials.json has the key, if it came from there. */
  storedIn?: string;
}

/** The access tokens of a login, renewed when they expire. */
export interface FreshTokens {
  /** When the current token expires, in Unix seconds. */
  readonly expiresAt: number;
  /** Returns a token that stays valid for a while. */
  token(signal: AbortSignal): Promise<string>;
  /** Returns a token other than `refused`, which the server rejected. */
  tokenAfter(refused: string, signal: AbortSignal): Promise<string>;
}
