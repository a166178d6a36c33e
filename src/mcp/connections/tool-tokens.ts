// What is sealed of a connection: its tokens, and all that is needed to renew and to revoke them.
import type { Keys } from "../../domain/key-ring.ts";
import { seal, unseal } from "../../policy/credentials/sealing.ts";

/** A client of an authorization server, as ours there. */
export interface ToolClient {
  readonly clientId: string;
  /** Undefined: a public client, with PKCE. */
  readonly clientSecret?: string | undefined;
}

/** What of the metadata of an authorization server (RFC 8414) goes on to be used, as it was when it was checked. */
export interface ToolIssuer {
  readonly issuer: string;
  /** Whether an operator named it, so that it may be inside of our network. */
  readonly isNamed: boolean;
  readonly tokenEndpoint: string;
  readonly authMethods: readonly string[];
  /** RFC 7009. */
  readonly revocationEndpoint?: string | undefined;
}

export interface ToolTokens {
  readonly accessToken: string;
  readonly refreshToken?: string | undefined;
  readonly client: ToolClient;
  readonly issuer: ToolIssuer;
  /** RFC 8707: as it stands in the metadata of the server. */
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

  /** Throws where the secret that they were sealed under is accepted no more. */
  openTokens(connectionId: string, sealed: string): ToolTokens {
    return JSON.parse(unseal(sealed, this.#keys, connectionId)) as ToolTokens;
  }

  sealClient(place: ClientPlace, client: KeptClient): string {
    return seal(JSON.stringify(client), this.#keys, contextOf(place));
  }

  openClient(place: ClientPlace, sealed: string): KeptClient | undefined {
    try {
      return JSON.parse(unseal(sealed, this.#keys, contextOf(place))) as KeptClient;
    } catch {
      // Registered under a secret that is accepted no more: another one is registered.
      return undefined;
    }
  }
}

interface ClientPlace {
  server: string;
  issuer: string;
}

export interface KeptClient extends ToolClient {
  readonly redirectUri: string;
  /** Unix seconds; null: never. */
  readonly endsAt: number | null;
}

function contextOf({ server, issuer }: ClientPlace): string {
  return `${server} ${issuer}`;
}
