// Whose usage and requests a credential sees: every endpoint that shows any asks here.
import { type Principal, seesUsageOf } from "../../../domain/principal.ts";
import type { RequestOwner } from "../../../domain/usage/request-log.ts";

/** Those of the account in the credential's environment, or the part of them that is the caller's own. */
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
