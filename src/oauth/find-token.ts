// Finds the record of a client's token, an access or refresh token. Hints about the type are not needed.
import type { OAuthStore, RefreshToken } from "../domain/people/oauth.ts";
import type { KeyChain, KeyStore } from "../domain/principal.ts";
import type { AccessTokens, VerifiedToken } from "../policy/credentials/access-tokens.ts";
import { tokenDigest } from "../policy/credentials/opaque-token.ts";
import { refreshTokenPrefix } from "./token/issue.ts";

export interface FindTokenDeps {
  oauth: OAuthStore;
  keys: Pick<KeyStore, "findChainById">;
  tokens: Pick<AccessTokens, "verify">;
}

export type FoundToken = { refresh: RefreshToken; grant: KeyChain } | { access: VerifiedToken; grant: KeyChain };

/**
 * Returns the token. Returns undefined if the token is unknown, forged, expired, or not issued to this client, so that
 * no client learns whether another client's token exists. The caller must check whether the token is still valid.
 */
export async function findToken(text: string, clientId: string, deps: FindTokenDeps): Promise<FoundToken | undefined> {
  const found = text.startsWith(refreshTokenPrefix) ? await refreshToken(text, deps) : await accessToken(text, deps);
  return found?.grant.keys[0].appId === clientId ? found : undefined;
}

async function refreshToken(text: string, { oauth }: FindTokenDeps): Promise<FoundToken | undefined> {
  const found = await oauth.findRefreshToken(tokenDigest(text));
  return found && { refresh: found.token, grant: found.grant };
}

async function accessToken(text: string, { tokens, keys }: FindTokenDeps): Promise<FoundToken | undefined> {
  const verification = await tokens.verify(text);
  if ("fault" in verification) return undefined;
  const { token } = verification;
  const grant = await keys.findChainById(token.keyId);
  const [of] = grant?.keys ?? [];
  // The token must belong to exactly the app, person and account of its grant.
  const isOfGrant =
    of?.appId === token.appId && of.personId === token.personId && grant?.account.id === token.accountId;
  return grant && isOfGrant ? { access: token, grant } : undefined;
}
