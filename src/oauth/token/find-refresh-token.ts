// Finds the refresh token that a request presents, with its grant.
import type { RefreshToken } from "../../domain/people/oauth.ts";
import type { KeyChain } from "../../domain/principal.ts";
import { tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { invalidGrant } from "../oauth-error.ts";
import { type ClientRequest, required, type TokenDeps } from "./stage.ts";

export interface FoundRefreshToken {
  /** As it was presented. */
  text: string;
  token: RefreshToken;
  /** With the membership that bounds it. */
  grant: KeyChain;
}

export async function findRefreshToken(request: ClientRequest, { oauth }: TokenDeps): Promise<FoundRefreshToken> {
  const text = required(request, "refresh_token");
  const found = await oauth.findRefreshToken(tokenDigest(text));
  if (found) return { text, ...found };
  throw invalidGrant("refresh_token_unknown");
}
