// A code is redeemed at once, or not at all.
import type { AuthorizationCode } from "../../domain/oauth.ts";
import { invalidGrant } from "../oauth-error.ts";
import type { ClientRequest } from "./stage.ts";

export function codeIsFresh(code: AuthorizationCode, { origin }: ClientRequest): undefined {
  if (origin.nowSeconds >= code.expiresAt) throw invalidGrant("code_expired");
}
