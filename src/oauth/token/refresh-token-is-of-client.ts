// A refresh token works only for the client that it was issued to (RFC 6749, 6).
import { invalidGrant } from "../oauth-error.ts";
import type { FoundRefreshToken } from "./find-refresh-token.ts";
import type { ClientRequest } from "./stage.ts";

export function refreshTokenIsOfClient({ grant }: FoundRefreshToken, { client }: ClientRequest): undefined {
  if (grant.keys[0].appId !== client.id) throw invalidGrant("refresh_token_of_other_client");
}
