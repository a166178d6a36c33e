// Rules for all actions of operators: an app is no operator, and no operator locks itself out.

import { forbidden } from "../../base/errors.ts";
import type { Account } from "../../domain/account.ts";
import type { ApiKeyRecord, Principal } from "../../domain/principal.ts";
import { requireScope } from "../authorize.ts";

/** Reports whether the principal may see names and addresses of model servers. */
export function isOperator({ scopes, appId }: Principal): boolean {
  return scopes.has("admin:manage") && appId === null;
}

export function requireOperator(principal: Principal): void {
  requireScope(principal, "admin:manage");
  if (principal.appId === null) return;
  throw forbidden("Apps cannot operate the installation; use an API key with admin:manage.");
}

/** Throws if `key` is one of the keys behind the request: the request's own credential would end with it. */
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
