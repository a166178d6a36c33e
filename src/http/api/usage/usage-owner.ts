// Decides whose usage and requests a credential sees, for every endpoint that shows them.
import { type Principal, seesUsageOf } from "../../../domain/principal.ts";
import type { RequestOwner } from "../../../domain/usage/request-log.ts";

/** Returns the owner: the account in the credential's environment, or the caller's own part of the account. */
export function usageOwnerOf(principal: Principal): RequestOwner {
  const { account, environment, appId } = principal;
  const personId = seesUsageOf(principal);
  return {
    accountId: account.id,
    environment,
    ...(appId === null ? {} : { appId }),
    ...(personId === null ? {} : { personId }),
  };
}
