// What a person took back, and what a member allowed who has left, gives nothing any more.
import { keyStatus } from "../../domain/principal.ts";
import { invalidGrant } from "../oauth-error.ts";
import type { FoundRefreshToken } from "./find-refresh-token.ts";
import type { ClientRequest } from "./stage.ts";

export function grantStands({ grant }: FoundRefreshToken, { origin }: ClientRequest): undefined {
  if (grant.account.status !== "active") throw invalidGrant("account_suspended");
  if (grant.keys.some((key) => keyStatus(key, origin.nowSeconds) !== "active")) throw invalidGrant("grant_ended");
}
