// How a command reaches the server.

export interface Connection {
  /** Without a slash at its end; includes `/v1`. */
  baseUrl: string;
  /** The credential to send; for a login, the access token that it had when the command began; `login` gives the one to send. */
  apiKey: string;
  /** Where the key came from, for messages; of a login, `your login at …`. */
  keySource: string;
  login?: FreshTokens;
  /** The data directory whose credentials.json has the key, where it came from there. */
  storedIn?: string;
}

/** The access tokens of a login, made anew where they end. */
export interface FreshTokens {
  /** When the token at hand ends, Unix seconds. */
  readonly expiresAt: number;
  /** One that lasts for a while. */
  token(signal: AbortSignal): Promise<string>;
  /** Another one than `refused`. */
  tokenAfter(refused: string, signal: AbortSignal): Promise<string>;
}
