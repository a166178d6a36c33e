// The sealed part of a connection: its tokens, and the data to refresh and revoke them.
import type { Keys } from "../../domain/key-ring.ts";
import { seal, unseal } from "../../policy/credentials/sealing.ts";

/** The gateway's client at an authorization server. */
export interface ToolClient {
  readonly clientId: string;
  /** Undefined for a public client with PKCE. */
  readonly clientSecret?: string | undefined;
}

/** The metadata of an authorization server that is stored (RFC 8414), as it was checked. */
export interface ToolIssuer {
  readonly issuer: string;
  /** True if an operator configured the authorization server, so that it may have a private address. */
  readonly isNamed: boolean;
  readonly tokenEndpoint: string;
  readonly authMethods: readonly string[];
  /** Revocation endpoint (RFC 7009). */
  readonly revocationEndpoint?: string | undefined;
}

export interface ToolTokens {
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  readonly client: ToolClient;
  readonly issuer: ToolIssuer;
  /** Resource identifier (RFC 8707), as the server's metadata states it. */
  readonly resource: string;
}

export class ToolSeals {
  readonly #keys: Keys;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  sealTokens(connectionId: string, tokens: ToolTokens): string {
    return seal(JSON.stringify(tokens), this.#keys, connectionId);
  }

  /** Throws if the secret that sealed the tokens is no longer accepted. */
  openTokens(connectionId: string, sealed: string): ToolTokens {
    return JSON.parse(unseal(sealed, this.#keys, connectionId)) as ToolTokens;
  }

  sealClient(owner: ClientOwner, client: KeptClient): string {
    return seal(JSON.stringify(client), this.#keys, contextOf(owner));
  }

  openClient(owner: ClientOwner, sealed: string): KeptClient | undefined {
    try {
      return JSON.parse(unseal(sealed, this.#keys, contextOf(owner))) as KeptClient;
    } catch {
      // Clients that were sealed under a lost secret are registered anew.
      return undefined;
    }
  }
}

interface ClientOwner {
  server: string;
  issuer: string;
}

export interface KeptClient extends ToolClient {
  readonly redirectUri: string;
  /** Unix seconds; null if the registration does not end. */
  readonly endsAt: number | null;
}

function contextOf({ server, issuer }: ClientOwner): string {
  return `${server} ${issuer}`;
}
