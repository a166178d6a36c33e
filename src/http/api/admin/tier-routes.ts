// The operators' endpoints for tiers.
import { z } from "zod";
import type { AccountStore } from "../../../domain/account.ts";
import type { Principal } from "../../../domain/principal.ts";
import { deleteTier, putTier, tierToWire, unknownTier } from "../../../policy/manage/manage-tiers.ts";
import type { KnownTier, Tiers } from "../../../policy/manage/tiers.ts";
import { tierRequest, tierShape } from "../../../wire/accounts.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, originOf } from "../changes.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminTierDeps extends AdminBaseDeps {
  accounts: Pick<AccountStore, "listTiers" | "putTier" | "deleteTier" | "countAccountsOfTier">;
  tiers: Pick<Tiers, "get" | "list" | "isGivenElsewhere">;
  /** Called after each committed change of a tier: it holds once this resolves. */
  tiersChanged(): Promise<void>;
}

const tierParameter = [{ name: "name", in: "path", description: "Name of the tier, such as `pro`." }] as const;
const tierList = z.object({ object: z.literal("list"), data: z.array(tierShape) }).meta({ id: "TierList" });
const deletedTier = z
  .object({ object: z.literal("tier"), name: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedTier" });

export function adminTierRoutes(deps: AdminTierDeps): ScopedRoute[] {
  const route = adminRouter(deps);
  return [
    route("GET", "/v1/admin/tiers", listDoc, list),
    route("PUT", "/v1/admin/tiers/:name", putDoc, put),
    route("DELETE", "/v1/admin/tiers/:name", deleteDoc, remove),
  ];
}

const listDoc: AdminDoc = {
  operationId: "listAllTiers",
  summary: "List the tiers, with where each comes from and how many accounts have it",
  response: { description: "The tiers.", json: tierList },
};

async function list(_exchange: Exchange, _principal: Principal, deps: AdminTierDeps): Promise<Response> {
  const data = await Promise.all(deps.tiers.list().map((tier) => withAccounts(tier, deps)));
  return Response.json({ object: "list", data } satisfies z.infer<typeof tierList>);
}

const putDoc: AdminDoc = {
  operationId: "putTier",
  summary: "Create a tier, or replace all of its figures",
  description:
    "It holds from the next request on, for all accounts of the tier. A built-in tier gets other figures that way. What headrace.yaml defines is read-only.",
  parameters: tierParameter,
  requestBody: tierRequest,
  example: { requests_per_minute: 300, tokens_per_minute: 200_000, monthly_tokens: null, monthly_spend: 250 },
  response: { description: "The tier.", json: tierShape },
  errors: [...bodyErrors, "service_unavailable"],
};

async function put(exchange: Exchange, principal: Principal, deps: AdminTierDeps): Promise<Response> {
  const name = exchange.params["name"] ?? "";
  const request = await readStrictBody(tierRequest, exchange.req, deps.requestLimits());
  const change = putTier(principal, name, request, deps.tiers, originOf(exchange, deps));
  if (change) {
    await deps.accounts.putTier(change.tier, change.event);
    await deps.tiersChanged();
  }
  const tier = deps.tiers.get(name);
  if (!tier) throw unknownTier(name);
  return Response.json(await withAccounts(tier, deps));
}

const deleteDoc: AdminDoc = {
  operationId: "deleteTier",
  summary: "Delete a tier that was made here",
  description:
    "A built-in tier gets its own figures back. Any other must have no accounts: give them another tier first.",
  parameters: tierParameter,
  response: { description: "It is deleted.", json: deletedTier },
  errors: ["invalid_request", "not_found", "service_unavailable"],
};

async function remove(exchange: Exchange, principal: Principal, deps: AdminTierDeps): Promise<Response> {
  const { accounts, tiers } = deps;
  const name = exchange.params["name"] ?? "";
  const stored = (await accounts.listTiers()).find((tier) => tier.name === name);
  const use = { stored, accounts: await accounts.countAccountsOfTier(name) };
  const event = deleteTier(principal, name, use, tiers, originOf(exchange, deps));
  const deleted = await accounts.deleteTier(name, event);
  if (!deleted) throw unknownTier(name);
  await deps.tiersChanged();
  return Response.json({ object: "tier", name, deleted: true } satisfies z.infer<typeof deletedTier>);
}

async function withAccounts(tier: KnownTier, { accounts }: AdminTierDeps) {
  return tierToWire(tier, await accounts.countAccountsOfTier(tier.name));
}
