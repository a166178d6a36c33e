// A refresh token that lay idle for too long has expired.
import { invalidGrant } from "../oauth-error.ts";
import type { FoundRefreshToken } from "./find-refresh-token.ts";
import type { ClientRequest } from "./stage.ts";

export function refreshTokenIsFresh({ token }: FoundRefreshToken, { origin }: ClientRequest): undefined {
  if (origin.nowSeconds >= token.expiresAt) throw invalidGrant("refresh_token_expired");
}
