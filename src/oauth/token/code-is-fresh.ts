// A code is redeemed at once, or not at all.

import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { codeSeconds } from "../authorize/code.ts";
import { invalidGrant } from "../oauth-error.ts";
import type { ClientRequest } from "./stage.ts";

export function codeIsFresh(code: AuthorizationCode, { origin }: ClientRequest): undefined {
  if (origin.nowSeconds >= code.expiresAt) throw invalidGrant("code_expired");
  // A clock that was set back makes no code live longer; two processes may differ by less.
  if (origin.nowSeconds < code.createdAt - codeSeconds) throw invalidGrant("code_of_the_future");
}
