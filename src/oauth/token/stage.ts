// Types of the token endpoint: requests, answers, and the stages of a grant type.

import type { Keys } from "../../domain/key-ring.ts";
import type { PublishedApp } from "../../domain/people/app.ts";
import type { OAuthStore } from "../../domain/people/oauth.ts";
import type { AccessTokens } from "../../policy/credentials/access-tokens.ts";
import type { RequestOrigin } from "../client/authenticate-client.ts";
import { OAuthError } from "../oauth-error.ts";

/** A request of an authenticated client. */
export interface ClientRequest {
  /** The parameters that have a value. Empty parameters count as missing (RFC 6749, 3.2). */
  parameters: ReadonlyMap<string, string>;
  /** Values of `resource`, the only parameter that may be repeated (RFC 8707, 2.2). */
  resources: readonly string[];
  client: PublishedApp;
  origin: RequestOrigin;
}

export interface TokenDeps {
  oauth: OAuthStore;
  tokens: Pick<AccessTokens, "issueForGrant">;
  /** Keys of 32 bytes. The keys of sealed answers are derived from them and the presented token. */
  sealingKey: Keys;
  /** Returns the public URL without a trailing slash. */
  issuer(): string;
  /** Called after a revocation, so that this process reads the store again. */
  changed(ids?: readonly string[]): void;
}

/** The token response (RFC 6749, 5.1). */
export interface TokenAnswer {
  access_token: string;
  token_type: "Bearer";
  /** The lifetime in seconds. */
  expires_in: number;
  refresh_token: string;
  scope: string;
}

/**
 * A check of a request. Throws to refuse the request, returns an answer to end the check, and nothing to pass the
 * request to the next stage.
 */
export type Stage<Found> = (
  found: Found,
  request: ClientRequest,
  deps: TokenDeps,
) => TokenAnswer | undefined | Promise<TokenAnswer | undefined>;

/**
 * The stages for an authenticated client that names the grant type. Only the last stage redeems the presented code or
 * token.
 */
export interface GrantType<Found> {
  find(request: ClientRequest, deps: TokenDeps): Promise<Found>;
  stages: readonly Stage<Found>[];
}

/** Returns a required parameter. Throws `invalid_request`. */
export function required({ parameters }: Pick<ClientRequest, "parameters">, name: string): string {
  const value = parameters.get(name);
  if (value !== undefined) return value;
  throw new OAuthError("invalid_request", `${name}: is required, in a form-encoded body.`, "parameter_missing");
}
