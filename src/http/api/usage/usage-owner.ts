// Determines which usage and requests a caller may see, for all endpoints that show them.
import { type Principal, seesUsageOf } from "../../../domain/principal.ts";
import type { RequestOwner } from "../../../domain/usage/request-log.ts";

/** Returns the owner whose usage the caller may see: the whole account in one environment, or only the caller. */
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
