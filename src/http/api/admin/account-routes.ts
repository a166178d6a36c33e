// The operators' endpoints for accounts.
import { z } from "zod";
import { calendarMonthOf } from "../../../base/calendar-month.ts";
import type { Account, AccountStore } from "../../../domain/account.ts";
import { type Environment, environments } from "../../../domain/api-key.ts";
import { accountAmounts } from "../../../domain/limits/amounts.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import type { Principal } from "../../../domain/principal.ts";
import { limitsOf } from "../../../policy/limits-of.ts";
import { accountToWire, createAccount, requireAccount, updateAccount } from "../../../policy/manage/manage-accounts.ts";
import type { Tiers } from "../../../policy/manage/tiers.ts";
import {
  accountDetailsShape,
  accountShape,
  createAccountRequest,
  updateAccountRequest,
} from "../../../wire/accounts.ts";
import { readQuery } from "../../decode/query.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, originOf } from "../changes.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminAccountDeps extends AdminBaseDeps {
  accounts: Pick<AccountStore, "findAccount" | "listAccounts" | "insertAccount" | "updateAccount">;
  tiers: Pick<Tiers, "get" | "find" | "list">;
  limits: Pick<LimitStore, "used">;
  /** Called after each committed change, so that whoever remembers accounts forgets them. */
  changed(ids?: readonly string[]): void;
}

const nanoUsdPerUsd = 1e9;
export const accountParameter = [{ name: "id", in: "path", description: "Id of the account, `acct_…`." }] as const;

const accountQuery = z.object(pageQuery);
const accountList = listOf(accountShape, "AccountList");

export function adminAccountRoutes(deps: AdminAccountDeps): ScopedRoute[] {
  const route = adminRouter(deps);
  return [
    route("GET", "/v1/admin/accounts", listDoc, list),
    route("POST", "/v1/admin/accounts", createDoc, create),
    route("GET", "/v1/admin/accounts/:id", retrieveDoc, retrieve),
    route("PATCH", "/v1/admin/accounts/:id", updateDoc, update),
  ];
}

/** The account that the path names, or `not_found`. */
export async function findAccount(
  { params }: Exchange,
  { accounts }: { accounts: Pick<AccountStore, "findAccount"> },
): Promise<Account> {
  const id = params["id"] ?? "";
  return requireAccount(await accounts.findAccount(id), id);
}

const listDoc: AdminDoc = {
  operationId: "listAccounts",
  summary: "List the accounts",
  description: "Oldest first.",
  query: accountQuery,
  response: { description: "One page of accounts.", json: accountList },
  errors: ["invalid_request"],
};

async function list({ req }: Exchange, _principal: Principal, { accounts }: AdminAccountDeps): Promise<Response> {
  const { limit, after } = readQuery(accountQuery, req.target);
  const found = await accounts.listAccounts({ after, limit: limit + 1 });
  return Response.json(pageOf(found.map(accountToWire), limit));
}

const createDoc: AdminDoc = {
  operationId: "createAccount",
  summary: "Create an account",
  description: "It has no key yet: `POST /v1/admin/accounts/{id}/keys` makes the first.",
  requestBody: createAccountRequest,
  example: { name: "Web shop", tier: "pro" },
  response: { description: "The new account.", json: accountShape },
  errors: [...bodyErrors, "service_unavailable"],
};

async function create(exchange: Exchange, principal: Principal, deps: AdminAccountDeps): Promise<Response> {
  const request = await readStrictBody(createAccountRequest, exchange.req, deps.requestLimits());
  const { account, event } = createAccount(principal, request, deps.tiers, originOf(exchange, deps));
  await deps.accounts.insertAccount(account, event);
  deps.changed([account.id]);
  return Response.json(accountToWire(account));
}

const retrieveDoc: AdminDoc = {
  operationId: "retrieveAccount",
  summary: "Retrieve one account, with what it used this month",
  parameters: accountParameter,
  response: { description: "The account.", json: accountDetailsShape },
  errors: ["not_found", "service_unavailable"],
};

async function retrieve(exchange: Exchange, _principal: Principal, deps: AdminAccountDeps): Promise<Response> {
  const account = await findAccount(exchange, deps);
  const month = calendarMonthOf(deps.clock.nowSeconds());
  const tier = deps.tiers.find(account.tier);
  const quotaOf = async (environment: Environment) => {
    const [quota] = limitsOf({ keys: [], account, environment, tier }).quotas;
    // Counted with and without a limit.
    if (!quota) throw new Error(`No quota counts for the account ${account.id}.`);
    const used = await deps.limits.used(quota);
    const spendLimit = quota.nanoUsd === null ? null : quota.nanoUsd / nanoUsdPerUsd;
    return {
      environment,
      tokens: { limit: quota.tokens, used: used.tokens },
      spend: { limit: spendLimit, used: used.nanoUsd / nanoUsdPerUsd },
    };
  };
  const details: z.infer<typeof accountDetailsShape> = {
    ...accountToWire(account),
    quota: {
      period_start: month.start,
      period_end: month.end,
      environments: await Promise.all(environments.map(quotaOf)),
    },
  };
  return Response.json(details);
}

const quotas = new Intl.ListFormat("en").format(accountAmounts.map(({ wire }) => `\`${wire}\``));

const updateDoc: AdminDoc = {
  operationId: "updateAccount",
  summary: "Change an account",
  description: `What is left out stays as it is. It holds from the next request on. While an account is suspended all of its keys are refused, with their tokens; that of the key in the request cannot be. The quotas ${quotas} stand in place of the tier's: a number, \`"unlimited"\` to lift them, or null to return to what the tier says.`,
  parameters: accountParameter,
  requestBody: updateAccountRequest,
  example: { tier: "enterprise", monthly_tokens: 5_000_000, monthly_spend: "unlimited" },
  response: { description: "The account.", json: accountShape },
  errors: [...bodyErrors, "not_found", "service_unavailable"],
};

async function update(exchange: Exchange, principal: Principal, deps: AdminAccountDeps): Promise<Response> {
  const request = await readStrictBody(updateAccountRequest, exchange.req, deps.requestLimits());
  const current = await findAccount(exchange, deps);
  const change = updateAccount(principal, current, request, deps.tiers, originOf(exchange, deps));
  if (!change) return Response.json(accountToWire(current));
  const updated = await deps.accounts.updateAccount(current.id, change.changes, change.event);
  deps.changed([current.id]);
  return Response.json(accountToWire(updated ?? current));
}
