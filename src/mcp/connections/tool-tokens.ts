// The encrypted data of a user's connection to an MCP server: tokens, and what is needed to refresh and revoke them.
import type { Keys } from "../../domain/key-ring.ts";
import { seal, unseal } from "../../policy/credentials/sealing.ts";

/** The gateway's OAuth client at an authorization server. */
export interface ToolClient {
  readonly clientId: string;
  /** Undefined for a public client, which uses PKCE. */
  readonly clientSecret?: string | undefined;
}

/** Stored metadata of an authorization server (RFC 8414). */
export interface ToolIssuer {
  readonly issuer: string;
  /** True if an operator configured the authorization server; its address may then be private. */
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
  /** Resource identifier (RFC 8707) from the server's metadata. */
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

  /** Decrypts tokens. Throws if the secret that encrypted them is no longer accepted. */
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
      // A client that cannot be decrypted is registered again.
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
  /** Expiry of the registration in Unix seconds; null if it never expires. */
  readonly endsAt: number | null;
}

function contextOf({ server, issuer }: ClientOwner): string {
  return `${server} ${issuer}`;
}
