// What holds for operators whatever they do: an app is none, and none locks itself out.

import { forbidden } from "../../base/errors.ts";
import type { Account } from "../../domain/account.ts";
import type { ApiKeyRecord, Principal } from "../../domain/principal.ts";
import { requireScope } from "../authorize.ts";

/** Whether names and addresses of model servers are theirs to see. */
export function isOperator({ scopes, appId }: Principal): boolean {
  return scopes.has("admin:manage") && appId === null;
}

export function requireOperator(principal: Principal): void {
  requireScope(principal, "admin:manage");
  if (principal.appId === null) return;
  throw forbidden("Apps cannot operate the installation; use an API key with admin:manage.");
}

/** The keys behind the one in the request count as well: with any of them it ends. */
export function requireOtherKey(principal: Principal, key: Pick<ApiKeyRecord, "id">): void {
  if (principal.keys.every(({ id }) => id !== key.id)) return;
  throw forbidden(
    "This would end the key in the request itself. Use another operator key for it; `headrace operator-key` makes one.",
  );
}

export function requireOtherAccount(principal: Principal, account: Pick<Account, "id">): void {
  if (principal.account.id !== account.id) return;
  throw forbidden(
    "status: the account of the key in the request cannot be suspended, as that would end the key itself. Use an operator key of another account.",
  );
}
