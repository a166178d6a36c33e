// The operators' endpoints for tiers.
import { z } from "zod";
import type { AccountStore } from "../../../domain/account.ts";
import type { Principal } from "../../../domain/principal.ts";
import { deleteTier, putTier, tierToWire, unknownTier } from "../../../policy/manage/manage-tiers.ts";
import type { KnownTier, Tiers } from "../../../policy/manage/tiers.ts";
import type { Origin } from "../../../policy/records/audit.ts";
import { type TierRequest, tierRequest, tierShape } from "../../../wire/accounts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminTierDeps extends EndpointDeps {
  accounts: Pick<AccountStore, "listTiers" | "putTier" | "deleteTier" | "countAccountsOfTier">;
  tiers: Pick<Tiers, "get" | "list" | "isGivenElsewhere">;
  /** Called after each committed change of a tier. Resolves once the change is in effect. */
  tiersChanged(): Promise<void>;
}

const tierParameter = [{ name: "name", in: "path", description: "Name of the tier, such as `pro`." }] as const;
const tierList = wholeListOf(tierShape, "TierList");
const deletedTier = z
  .object({ object: z.literal("tier"), name: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedTier" });

const endpoint = adminEndpoints<AdminTierDeps>();

export function adminTierRoutes(deps: AdminTierDeps): ScopedRoute[] {
  return [list(deps), put(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/admin/tiers", {
  operationId: "listAllTiers",
  summary: "List the tiers, with their source and number of accounts",
  response: { description: "The tiers.", json: tierList },
  async answer({ deps }) {
    return { object: "list", data: await Promise.all(deps.tiers.list().map((tier) => withAccounts(tier, deps))) };
  },
});

const put = endpoint("PUT", "/v1/admin/tiers/:name", {
  operationId: "putTier",
  summary: "Create a tier, or replace all of its figures",
  description:
    "An amount of `null` means no limit. The rates are required. The change applies from the next request on, for all accounts of the tier. You can also change the figures of a built-in tier. Tiers in headrace.yaml are read-only.",
  parameters: tierParameter,
  requestBody: tierRequest,
  example: { requests_per_minute: 300, tokens_per_minute: 200_000, monthly_tokens: null, monthly_spend: 250 },
  response: { description: "The tier.", json: tierShape },
  async answer({ deps, principal, id: name, body, origin }) {
    await storeTier(deps, principal, name, body, origin);
    const tier = deps.tiers.get(name);
    if (!tier) throw unknownTier(name);
    return withAccounts(tier, deps);
  },
});

const remove = endpoint("DELETE", "/v1/admin/tiers/:name", {
  operationId: "deleteTier",
  summary: "Delete a tier that was created by this API",
  description:
    "A built-in tier returns to its original figures. Any other tier must have no accounts: give them another tier first.",
  parameters: tierParameter,
  response: { description: "The tier is deleted.", json: deletedTier },
  async answer({ deps, principal, id: name, origin }) {
    await removeTier(deps, principal, name, origin);
    return { object: "tier", name, deleted: true };
  },
});

type TierDeps = Omit<AdminTierDeps, keyof EndpointDeps>;

/** Creates the tier, or replaces it if its figures differ. */
export async function storeTier(
  deps: TierDeps,
  principal: Principal,
  name: string,
  request: TierRequest,
  origin: Origin,
): Promise<void> {
  const change = putTier(principal, name, request, deps.tiers, origin);
  if (!change) return;
  await deps.accounts.putTier(change.tier, change.event);
  await deps.tiersChanged();
}

/** Deletes a tier from the database. Throws if the tier cannot be deleted. */
export async function removeTier(deps: TierDeps, principal: Principal, name: string, origin: Origin): Promise<void> {
  const { accounts, tiers } = deps;
  const stored = (await accounts.listTiers()).find((tier) => tier.name === name);
  const use = { stored, accounts: await accounts.countAccountsOfTier(name) };
  const event = deleteTier(principal, name, use, tiers, origin);
  const deleted = await accounts.deleteTier(name, event);
  if (!deleted) throw unknownTier(name);
  await deps.tiersChanged();
}

async function withAccounts(tier: KnownTier, { accounts }: AdminTierDeps) {
  return tierToWire(tier, await accounts.countAccountsOfTier(tier.name));
}
