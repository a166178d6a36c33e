// The operators' endpoints for organizations, and for the accounts that belong to them.
import { z } from "zod";
import { GatewayError, invalidRequest } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { AccountStore, OrganizationStore } from "../../../domain/account.ts";
import { environments } from "../../../domain/api-key.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import type { Organization } from "../../../domain/organization.ts";
import { organizationLimits } from "../../../policy/limits-of.ts";
import { accountToWire, requireAccount } from "../../../policy/manage/manage-accounts.ts";
import {
  createOrganization,
  deleteOrganization,
  moveEvent,
  organizationToWire,
  requireOrganization,
  updateOrganization,
} from "../../../policy/manage/manage-organizations.ts";
import { monthOf } from "../../../policy/quota-use.ts";
import { accountShape } from "../../../wire/accounts.ts";
import {
  createOrganizationRequest,
  organizationDetailsShape,
  organizationShape,
  updateOrganizationRequest,
} from "../../../wire/operations/organizations.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { accountList } from "./account-routes.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminOrganizationDeps extends EndpointDeps {
  organizations: OrganizationStore;
  accounts: Pick<AccountStore, "findAccount">;
  limits: Pick<LimitStore, "used" | "usedInWindow" | "forgetQuotas">;
  /** Called after each committed change, to clear caches of the accounts in these organizations and of these accounts. */
  changed(ids?: readonly string[]): void;
}

const idParameter = { name: "id", in: "path", description: "Id of the organization, `org_…`." } as const;
const accountParameters = [
  idParameter,
  { name: "account", in: "path", description: "Id of the account, `acct_…`." },
] as const;
const organizationList = listOf(organizationShape, "OrganizationList");
const deletedOrganization = z
  .object({ object: z.literal("organization"), id: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedOrganization" });

const endpoint = adminEndpoints<AdminOrganizationDeps>();

export function adminOrganizationRoutes(deps: AdminOrganizationDeps): ScopedRoute[] {
  return [
    list(deps),
    create(deps),
    retrieve(deps),
    update(deps),
    remove(deps),
    listAccounts(deps),
    add(deps),
    take(deps),
  ];
}

const list = endpoint("GET", "/v1/admin/organizations", {
  operationId: "listOrganizations",
  summary: "List the organizations",
  description: "Oldest first.",
  query: z.object(pageQuery),
  response: { description: "One page of organizations.", json: organizationList },
  async answer({ deps: { organizations }, query: { limit, after } }) {
    const found = await organizations.listOrganizations({ after, limit: limit + 1 });
    const counts = await organizations.countAccountsOf(found.map(({ id }) => id));
    return pageOf(
      found.map((one) => organizationToWire(one, counts.get(one.id) ?? 0)),
      limit,
    );
  },
});

const create = endpoint("POST", "/v1/admin/organizations", {
  operationId: "createOrganization",
  summary: "Create an organization",
  description:
    "The accounts of an organization share its limits, in addition to their own. The limits apply in the environments `live` and `test`, separately. The organization has no account yet: `PUT /v1/admin/organizations/{id}/accounts/{account}` adds one.",
  requestBody: createOrganizationRequest,
  example: { name: "Example Group", monthly_spend: 5_000 },
  response: { description: "The new organization.", json: organizationShape },
  async answer({ deps, principal, body, origin }) {
    const { organization, event } = createOrganization(principal, body, origin);
    await deps.organizations.insertOrganization(organization, event);
    return organizationToWire(organization, 0);
  },
});

const retrieve = endpoint("GET", "/v1/admin/organizations/:id", {
  operationId: "retrieveOrganization",
  summary: "Retrieve one organization, with the usage of its accounts this month",
  parameters: [idParameter],
  response: { description: "The organization.", json: organizationDetailsShape },
  async answer({ deps, id }) {
    const organization = await find(deps, id);
    return {
      ...(await withCount(deps, organization)),
      quota: await monthOf(
        (environment) => organizationLimits(organization, environment),
        environments,
        deps.limits,
        deps.clock.nowSeconds(),
      ),
    };
  },
});

const update = endpoint("PATCH", "/v1/admin/organizations/:id", {
  operationId: "updateOrganization",
  summary: "Change an organization",
  description: "Omitted members keep their values. The change applies from the next request of its accounts on.",
  parameters: [idParameter],
  requestBody: updateOrganizationRequest,
  example: { monthly_spend: 8_000, quotas: [{ unit: "usd", amount: 500, per: "day" }] },
  response: { description: "The organization.", json: organizationShape },
  async answer({ deps, principal, id, body, origin }) {
    const current = await find(deps, id);
    const change = updateOrganization(principal, current, body, origin);
    if (!change) return withCount(deps, current);
    const updated = await deps.organizations.updateOrganization(id, change.changes, change.event);
    deps.changed([id]);
    return withCount(deps, requireOrganization(updated, id));
  },
});

const remove = endpoint("DELETE", "/v1/admin/organizations/:id", {
  operationId: "deleteOrganization",
  summary: "Delete an organization that has no accounts",
  parameters: [idParameter],
  response: { description: "The organization is deleted.", json: deletedOrganization },
  async answer({ deps, principal, id, origin }) {
    const current = await find(deps, id);
    const isDeleted = await deps.organizations.deleteOrganization(id, deleteOrganization(principal, current, origin));
    if (isDeleted) return { object: "organization", id, deleted: true };
    requireOrganization(await deps.organizations.findOrganization(id), id);
    throw invalidRequest(
      "The organization has accounts: take them out with DELETE /v1/admin/organizations/{id}/accounts/{account} first.",
    );
  },
});

const listAccounts = endpoint("GET", "/v1/admin/organizations/:id/accounts", {
  operationId: "listAccountsOfOrganization",
  summary: "List the accounts of an organization",
  description: "Oldest first.",
  parameters: [idParameter],
  query: z.object(pageQuery),
  response: { description: "One page of accounts.", json: accountList },
  async answer({ deps, id, query: { limit, after } }) {
    await find(deps, id);
    const found = await deps.organizations.listAccountsOf(id, { after, limit: limit + 1 });
    return pageOf(found.map(accountToWire), limit);
  },
});

const add = endpoint("PUT", "/v1/admin/organizations/:id/accounts/:account", {
  operationId: "addAccountToOrganization",
  summary: "Put an account into an organization",
  description:
    "An account belongs to one organization at most: it leaves the previous one. All that the account used in the current windows counts in the organization from then on, and no longer in the previous one. Requests that run at that moment are not counted.",
  parameters: accountParameters,
  response: { description: "The account.", json: accountShape },
  errors: ["not_found"],
  async answer({ deps, principal, id, exchange, origin }) {
    const organization = await find(deps, id);
    const accountId = exchange.params["account"] ?? "";
    const account = requireAccount(await deps.accounts.findAccount(accountId), accountId);
    const event = moveEvent("organization.account_added", principal, organization, accountId, origin);
    const moved = await deps.organizations.moveAccount(accountId, id, event);
    if (!moved && account.organizationId !== id) requireOrganization(undefined, id);
    if (moved) joined(deps, accountId, [organization, moved.before]);
    return accountToWire({ ...account, organizationId: id });
  },
});

const take = endpoint("DELETE", "/v1/admin/organizations/:id/accounts/:account", {
  operationId: "removeAccountFromOrganization",
  summary: "Take an account out of an organization",
  description: "The usage of the account no longer counts in the organization.",
  parameters: accountParameters,
  response: { description: "The account.", json: accountShape },
  async answer({ deps, principal, id, exchange, origin }) {
    const organization = await find(deps, id);
    const accountId = exchange.params["account"] ?? "";
    const account = requireAccount(await deps.accounts.findAccount(accountId), accountId);
    if (account.organizationId !== id) {
      throw new GatewayError("not_found", `The account ${shown(accountId)} does not belong to this organization.`);
    }
    const event = moveEvent("organization.account_removed", principal, organization, accountId, origin);
    const moved = await deps.organizations.moveAccount(accountId, null, event);
    if (moved) joined(deps, accountId, [moved.before]);
    return accountToWire({ ...account, organizationId: undefined });
  },
});

/** Drops the cached usage of these organizations, because an account has joined or left them. */
function joined(deps: AdminOrganizationDeps, accountId: string, changed: readonly (Organization | null)[]): void {
  deps.changed([accountId]);
  const quotas = changed.flatMap((organization) =>
    environments.flatMap((environment) => {
      if (!organization) return [];
      const { quota, windows } = organizationLimits(organization, environment);
      return [quota, ...windows];
    }),
  );
  deps.limits.forgetQuotas(quotas);
}

async function find({ organizations }: AdminOrganizationDeps, id: string): Promise<Organization> {
  return requireOrganization(await organizations.findOrganization(id), id);
}

async function withCount({ organizations }: AdminOrganizationDeps, organization: Organization) {
  const counts = await organizations.countAccountsOf([organization.id]);
  return organizationToWire(organization, counts.get(organization.id) ?? 0);
}
