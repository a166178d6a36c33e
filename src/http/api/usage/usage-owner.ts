// Determines whose usage and requests a caller sees, for all endpoints that show them.
import { type Principal, seesUsageOf } from "../../../domain/principal.ts";
import type { RequestOwner } from "../../../domain/usage/request-log.ts";

/** Returns whose usage the caller sees: the whole account's in one environment, or only the caller's own. */
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
