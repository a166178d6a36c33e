// The tokens of an answer: an access token that is signed, and a refresh token that is random.
import type { PublishedApp } from "../../domain/people/app.ts";
import type { RefreshToken } from "../../domain/people/oauth.ts";
import type { ApiKeyRecord } from "../../domain/principal.ts";
import { newOpaqueToken, tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { OAuthError } from "../oauth-error.ts";
import { requestedScopes } from "../scopes.ts";
import type { TokenAnswer, TokenDeps } from "./stage.ts";

const accessTokenSeconds = 3_600;
/** Without a use. */
const refreshTokenSeconds = 30 * 86_400;
export const refreshTokenPrefix = "hrr_";

export function newRefreshToken(grantId: string, nowSeconds: number): { token: string; record: RefreshToken } {
  const token = newOpaqueToken(refreshTokenPrefix);
  const record: RefreshToken = {
    digest: tokenDigest(token),
    grantId,
    createdAt: nowSeconds,
    expiresAt: nowSeconds + refreshTokenSeconds,
    usedAt: null,
    sealedAnswer: null,
  };
  return { token, record };
}

/**
 * `scope` narrows the access token within what was granted, of which only counts what the app still may have. Throws
 * `invalid_scope`.
 */
export async function signedAnswer(
  grant: ApiKeyRecord,
  scope: string | undefined,
  refreshToken: string,
  client: PublishedApp,
  { tokens }: TokenDeps,
): Promise<TokenAnswer> {
  const granted = grant.scopes.filter((name) => client.scopes.includes(name));
  const scopes = requestedScopes(scope, { scopes: granted });
  if ("fault" in scopes) throw new OAuthError("invalid_scope", scopes.fault);
  if (scopes.length === 0) {
    throw new OAuthError(
      "invalid_scope",
      "The app may no longer have any of the scopes that were allowed.",
      "no_scope",
    );
  }
  const {
    accessToken,
    expiresIn,
    scope: given,
  } = await tokens.issueForGrant({
    grant,
    personId: grant.personId ?? "",
    appId: client.id,
    scopes,
    expiresIn: accessTokenSeconds,
  });
  return {
    access_token: accessToken,
    token_type: "Bearer",
    expires_in: expiresIn,
    refresh_token: refreshToken,
    scope: given,
  };
}
