// The operators' endpoints for accounts.

import { z } from "zod";
import type { Account, AccountStore } from "../../../domain/account.ts";
import { type Environment, environments } from "../../../domain/api-key.ts";
import { accountAmounts } from "../../../domain/limits/amounts.ts";
import { runningRaises } from "../../../domain/limits/limit-requests.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { KeptAnswers } from "../../../inference/cache/kept-answers.ts";
import { limitsOf } from "../../../policy/limits-of.ts";
import { accountToWire, createAccount, requireAccount, updateAccount } from "../../../policy/manage/manage-accounts.ts";
import type { Tiers } from "../../../policy/manage/tiers.ts";
import { monthOf } from "../../../policy/quota-use.ts";
import type { Origin } from "../../../policy/records/audit.ts";
import {
  type AccountWire,
  accountDetailsShape,
  accountShape,
  createAccountRequest,
  type UpdateAccountRequest,
  updateAccountRequest,
} from "../../../wire/accounts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps, Named } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminAccountDeps extends EndpointDeps {
  accounts: Pick<AccountStore, "findAccount" | "listAccounts" | "insertAccount" | "updateAccount">;
  tiers: Pick<Tiers, "get" | "find" | "list">;
  limits: Pick<LimitStore, "used" | "usedInWindow">;
  /** Called after each committed change, to clear caches of these accounts. */
  changed(ids?: readonly string[]): void;
  keptAnswers: Pick<KeptAnswers, "forgetAccounts">;
}

export const accountParameter = [{ name: "id", in: "path", description: "Id of the account, `acct_…`." }] as const;

const accountQuery = z.object({
  ...pageQuery,
  search: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .meta({ description: "1 to 100 characters: text in the name, or the whole id" }),
});
export const accountList = listOf(accountShape, "AccountList");

const endpoint = adminEndpoints<AdminAccountDeps>();

export function adminAccountRoutes(deps: AdminAccountDeps): ScopedRoute[] {
  return [list(deps), create(deps), retrieve(deps), update(deps), suspend(deps), resume(deps)];
}

/** Returns the account with the id in the path. Throws `not_found` if it does not exist. */
export async function findAccount({
  id,
  deps: { accounts },
}: {
  id: string;
  deps: { accounts: Pick<AccountStore, "findAccount"> };
}): Promise<Account> {
  return requireAccount(await accounts.findAccount(id), id);
}

const list = endpoint("GET", "/v1/admin/accounts", {
  operationId: "listAccounts",
  summary: "List the accounts",
  description: "Oldest first.",
  query: accountQuery,
  response: { description: "One page of accounts.", json: accountList },
  async answer({ deps: { accounts }, query: { limit, after, search } }) {
    const found = await accounts.listAccounts({ after, limit: limit + 1, search });
    return pageOf(found.map(accountToWire), limit);
  },
});

const create = endpoint("POST", "/v1/admin/accounts", {
  operationId: "createAccount",
  summary: "Create an account",
  description: "The account has no key yet. `POST /v1/admin/accounts/{id}/keys` creates the first one.",
  requestBody: createAccountRequest,
  example: { name: "Web shop", tier: "pro" },
  response: { description: "The new account.", json: accountShape },
  async answer({ deps, principal, body, origin }) {
    const { account, event } = createAccount(principal, body, deps.tiers, origin);
    await deps.accounts.insertAccount(account, event);
    deps.changed([account.id]);
    return accountToWire(account);
  },
});

const retrieve = endpoint("GET", "/v1/admin/accounts/:id", {
  operationId: "retrieveAccount",
  summary: "Retrieve one account, with its usage of this month",
  parameters: accountParameter,
  response: { description: "The account.", json: accountDetailsShape },
  async answer({ deps, id }) {
    const found = await findAccount({ id, deps });
    const nowSeconds = deps.clock.nowSeconds();
    const account = { ...found, raises: runningRaises(found.raises, nowSeconds) };
    const tier = deps.tiers.find(account.tier);
    const limitsIn = (environment: Environment) => limitsOf({ keys: [], account, environment, tier }).ofAccount;
    return { ...accountToWire(account), quota: await monthOf(limitsIn, environments, deps.limits, nowSeconds) };
  },
});

const quotas = new Intl.ListFormat("en").format(accountAmounts.map(({ wire }) => `\`${wire}\``));

const update = endpoint("PATCH", "/v1/admin/accounts/:id", {
  operationId: "updateAccount",
  summary: "Change an account",
  description: `Omitted members keep their values. The change applies from the next request on. While an account is suspended, all its keys and their tokens are refused, their running requests are stopped, and its response cache is cleared. You cannot suspend the account of the key in the request. The quotas ${quotas} replace the tier's: a number, \`"unlimited"\` for no limit, or null for the tier's value.`,
  parameters: accountParameter,
  requestBody: updateAccountRequest,
  example: { tier: "enterprise", monthly_tokens: 5_000_000, monthly_spend: "unlimited" },
  response: { description: "The account.", json: accountShape },
  answer: (asked) => change(asked, asked.body),
});

const suspend = endpoint("POST", "/v1/admin/accounts/:id/suspend", {
  operationId: "suspendAccount",
  summary: "Suspend an account",
  description:
    "Like a change of `status` to `suspended`: refuses all keys, apps and tokens of the account within a second, on every replica, and stops their running requests.",
  parameters: accountParameter,
  response: { description: "The account.", json: accountShape },
  answer: (asked) => change(asked, { status: "suspended" }),
});

const resume = endpoint("POST", "/v1/admin/accounts/:id/resume", {
  operationId: "resumeAccount",
  summary: "Resume a suspended account",
  description: "Its keys, apps and tokens work again, unless they have ended meanwhile.",
  parameters: accountParameter,
  response: { description: "The account.", json: accountShape },
  answer: (asked) => change(asked, { status: "active" }),
});

type Change = Named<AdminAccountDeps> & { origin: Origin };

async function change({ deps, principal, id, origin }: Change, body: UpdateAccountRequest): Promise<AccountWire> {
  return accountToWire(await changeAccount(deps, principal, await findAccount({ id, deps }), body, origin));
}

/** Changes the account. Returns the account with the changes. */
export async function changeAccount(
  deps: Pick<AdminAccountDeps, "accounts" | "tiers" | "changed" | "keptAnswers">,
  principal: Principal,
  current: Account,
  request: UpdateAccountRequest,
  origin: Origin,
): Promise<Account> {
  const update = updateAccount(principal, current, request, deps.tiers, origin);
  if (!update) return current;
  const updated = await deps.accounts.updateAccount(current.id, update.changes, update.event);
  deps.changed([current.id]);
  if (update.changes.status === "suspended") await deps.keptAnswers.forgetAccounts([current.id]);
  return updated ?? current;
}
