// The endpoints for the budgets of end users: users that an account's requests name, and that are no members.
import { forbidden, GatewayError, invalidRequest } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { AccountStore } from "../../../domain/account.ts";
import { environments } from "../../../domain/api-key.ts";
import {
  type EndUserBudgets,
  endUserOf,
  endUserTag,
  maxBudgetsLength,
  maxNamedEndUsers,
} from "../../../domain/end-users.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import type { GivenQuotaRule, QuotaRule } from "../../../domain/limits/quota-rules.ts";
import { ownOnly, type Principal } from "../../../domain/principal.ts";
import { endUserQuotas } from "../../../policy/limits-of.ts";
import { requireKeyManager } from "../../../policy/manage/delegation.ts";
import { quotaRules } from "../../../policy/manage/key-values.ts";
import { quotaUse } from "../../../policy/quota-use.ts";
import { auditEvent, type Origin } from "../../../policy/records/audit.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import {
  endUserDefaultRequest,
  endUserDetailsShape,
  endUserListShape,
  endUserRequest,
} from "../../../wire/operations/end-users.ts";
import { rulesOnWire } from "../../../wire/quotas.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import { type EndpointDeps, type Named, scopedEndpoints } from "../endpoint.ts";

export interface EndUserRouteDeps extends EndpointDeps {
  accounts: Pick<AccountStore, "changeEndUsers" | "findAccount">;
  limits: Pick<LimitStore, "usedInWindow" | "forgetQuotas">;
  throttle: Pick<Throttle, "require">;
  /** Called after each committed change, to clear caches of the account's credentials. */
  changed(ids?: readonly string[]): void;
}

type Request = Named<EndUserRouteDeps>;

const idParameter = [{ name: "id", in: "path", description: "Id of the end user, as requests name it." }] as const;
const endpoint = scopedEndpoints<EndUserRouteDeps>("keys:manage", {
  tag: "Usage",
  errors: ["permission_denied"],
  admit: requireWholeAccount,
});

export function endUserRoutes(deps: EndUserRouteDeps): ScopedRoute[] {
  return [list(deps), setDefault(deps), retrieve(deps), put(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/account/end-users", {
  operationId: "listEndUsers",
  summary: "List the budgets of end users",
  description: "For owners, admins, and keys of the account that no other key made.",
  response: { description: "The default budget, and the budgets of single end users.", json: endUserListShape },
  answer: viewOf,
});

const setDefault = endpoint("PUT", "/v1/account/end-users", {
  operationId: "setDefaultEndUserBudget",
  summary: "Set the budget of each end user without one of their own",
  description:
    "An end user is the user that a request names with `safety_identifier`, `user`, `metadata.user_id` in Messages, or the tag `user:ID` in the header `x-headrace-tags`. Without a default budget, only end users with a budget of their own are limited and recorded. With one, each end user is recorded in usage under the tag `user:ID`.",
  requestBody: endUserDefaultRequest,
  example: { default_quotas: [{ unit: "usd", amount: 0.5, per: "day" }] },
  response: { description: "All budgets.", json: endUserListShape },
  async answer({ deps, principal, id, body, origin }) {
    const rules = body.default_quotas && rulesOf(body.default_quotas);
    await change({ deps, principal, id }, origin, "default", rules, (current) => ({ ...current, default: rules }));
    return viewOf({ deps, principal, id });
  },
});

const retrieve = endpoint("GET", "/v1/account/end-users/:id", {
  operationId: "retrieveEndUser",
  summary: "Retrieve the budget of one end user, with its usage",
  parameters: idParameter,
  response: { description: "The budget that applies.", json: endUserDetailsShape },
  answer: detailsOf,
});

const put = endpoint("PUT", "/v1/account/end-users/:id", {
  operationId: "setEndUserBudget",
  summary: "Set the budget of one end user, in place of the default budget",
  parameters: idParameter,
  requestBody: endUserRequest,
  example: { quotas: [{ unit: "usd", amount: 5, per: "month" }] },
  response: { description: "The budget.", json: endUserDetailsShape },
  async answer({ deps, principal, id, body, origin }) {
    const [tag, rules] = [endUserTag(id), rulesOf(body.quotas)];
    await change({ deps, principal, id }, origin, endUserOf(tag), rules, ({ named, ...others }) => {
      if (!Object.hasOwn(named, tag) && Object.keys(named).length >= maxNamedEndUsers) {
        throw invalidRequest(
          `An account can set budgets for at most ${maxNamedEndUsers} single end users. Delete one first, or use the default budget.`,
        );
      }
      return { ...others, named: { ...named, [tag]: rules } };
    });
    return detailsOf({ deps, principal, id });
  },
});

const remove = endpoint("DELETE", "/v1/account/end-users/:id", {
  operationId: "deleteEndUserBudget",
  summary: "Remove the budget of one end user",
  description: "The default budget applies again, if there is one.",
  parameters: idParameter,
  response: { description: "The budget that applies now.", json: endUserDetailsShape },
  async answer({ deps, principal, id, origin }) {
    const tag = endUserTag(id);
    await change({ deps, principal, id }, origin, endUserOf(tag), null, ({ named, ...others }) => {
      if (!Object.hasOwn(named, tag)) {
        throw new GatewayError("not_found", `The end user ${shown(id)} has no budget of their own.`);
      }
      const { [tag]: _, ...rest } = named;
      return { ...others, named: rest };
    });
    return detailsOf({ deps, principal, id });
  },
});

/** Throws unless the principal acts for the whole account. A member, or a key that another key made, does not. */
function requireWholeAccount(principal: Principal): void {
  requireKeyManager(principal);
  if (ownOnly(principal) === null && (principal.person || principal.keys.length === 1)) return;
  throw forbidden(
    "Only owners, admins, and keys of the account that no other key made can manage budgets of end users.",
  );
}

function rulesOf(given: readonly GivenQuotaRule[]): QuotaRule[] {
  const rules = quotaRules(given);
  for (const [i, { window, tag }] of rules.entries()) {
    if (tag !== undefined) throw invalidRequest(`quotas[${i}].tag: must be left out: the end user's tag is used.`);
    // Only calendar windows are allowed: the start of a rolling window would have to be stored for each end user, of
    // whom there may be any number.
    if (window !== "calendar") throw invalidRequest(`quotas[${i}].window: must be calendar, such as per day or month.`);
  }
  return rules;
}

async function change(
  { deps, principal }: Request,
  origin: Origin,
  endUser: string,
  rules: readonly QuotaRule[] | null,
  by: (current: EndUserBudgets) => EndUserBudgets,
): Promise<void> {
  const { id: accountId } = principal.account;
  if (principal.person === undefined && principal.environment === "test") {
    throw forbidden(
      "Budgets of end users hold in the live environment as well: change them with a live key or a login.",
    );
  }
  await deps.throttle.require("change", principal);
  const detail = { end_user: endUser, quotas: rules && rulesOnWire(rules) };
  const event = auditEvent("account.end_users_changed", principal, origin, { accountId, targetId: accountId, detail });
  let before: readonly QuotaRule[] | undefined;
  const changed = (current: EndUserBudgets) => {
    before = current.named[endUserTag(endUser)];
    const budgets = by(current);
    const { length } = JSON.stringify(budgets);
    if (length > maxBudgetsLength && length > JSON.stringify(current).length) throw tooLong();
    return budgets.default === null && Object.keys(budgets.named).length === 0 ? undefined : budgets;
  };
  await deps.accounts.changeEndUsers(accountId, changed, event);
  // The cached usage is dropped. If a budget was removed and set again, requests in between were not counted in the
  // cache.
  const tag = endUserTag(endUser);
  const quotas = [...(before ?? []), ...(rules ?? [])];
  deps.limits.forgetQuotas(environments.flatMap((one) => endUserQuotas(accountId, one, tag, quotas)));
  deps.changed([accountId]);
}

function tooLong(): GatewayError {
  return invalidRequest(
    `quotas: the budgets of all end users of an account may have at most ${maxBudgetsLength} characters as JSON. Name fewer models, such as by a prefix (\`gpt-*\`), or use the default budget for more end users.`,
  );
}

/** Reads the current budgets from the store, because the principal was authenticated before the change. */
async function budgetsOf({ deps, principal }: Request): Promise<EndUserBudgets> {
  const account = await deps.accounts.findAccount(principal.account.id);
  return account?.endUsers ?? { default: null, named: {} };
}

async function viewOf(request: Request) {
  const budgets = await budgetsOf(request);
  return {
    object: "list",
    default_quotas: budgets.default && rulesOnWire(budgets.default),
    data: Object.entries(budgets.named).map(([tag, rules]) => ({
      ...({ object: "end_user", id: endUserOf(tag) } as const),
      quotas: rulesOnWire(rules),
    })),
  } as const;
}

async function detailsOf(request: Request) {
  const { deps, principal, id } = request;
  const budgets = await budgetsOf(request);
  const tag = endUserTag(id);
  const isNamed = Object.hasOwn(budgets.named, tag);
  const rules = (isNamed ? budgets.named[tag] : budgets.default) ?? [];
  const quotas = endUserQuotas(principal.account.id, principal.environment, tag, rules);
  return {
    object: "end_user",
    id: endUserOf(tag),
    quotas: rulesOnWire(rules),
    is_default: !isNamed,
    quotas_used: await quotaUse(quotas, deps.limits),
  } as const;
}
