// The operators' endpoints for the API keys of any account.
import { z } from "zod";
import { GatewayError } from "../../../base/errors.ts";
import type { AccountStore } from "../../../domain/account.ts";
import { environments } from "../../../domain/api-key.ts";
import type { ApiKeyRecord, KeyStore, Principal } from "../../../domain/principal.ts";
import { createKeyAsOperator, revokeKeyAsOperator, toWire } from "../../../policy/manage/manage-keys.ts";
import { requireOtherKey } from "../../../policy/manage/operator.ts";
import { createdKeyShape, createKeyRequest, keyShape } from "../../../wire/keys.ts";
import { readQuery } from "../../decode/query.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, noStore, originOf } from "../changes.ts";
import { keyList } from "../key-list.ts";
import { pageOf, pageQuery } from "../list.ts";
import { accountParameter, findAccount } from "./account-routes.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminKeyDeps extends AdminBaseDeps {
  accounts: Pick<AccountStore, "findAccount">;
  keys: Pick<KeyStore, "findChainById" | "insertKey" | "listKeys" | "updateKey">;
  pepper: Uint8Array;
  /** Called after each committed change, so that whoever remembers keys forgets them. */
  changed(ids?: readonly string[]): void;
}

const createAccountKeyRequest = createKeyRequest
  .extend({
    scopes: createKeyRequest.shape.scopes.describe(
      "What it may do, `admin:manage` included. Default: `chat:read chat:write models:read`.",
    ),
    environment: z.enum(environments).describe("Keys of `dev` work in development mode alone."),
  })
  .meta({ id: "CreateAccountKeyRequest" });

const keyQuery = z.object({
  ...pageQuery,
  environment: z
    .enum(environments)
    .optional()
    .meta({ description: `one of ${environments.join(", ")}; left out: keys of all of them` }),
});

export function adminKeyRoutes(deps: AdminKeyDeps): ScopedRoute[] {
  const route = adminRouter(deps);
  return [
    route("POST", "/v1/admin/accounts/:id/keys", createDoc, create),
    route("GET", "/v1/admin/accounts/:id/keys", listDoc, list),
    route("DELETE", "/v1/admin/keys/:id", revokeDoc, revoke),
  ];
}

const createDoc: AdminDoc = {
  operationId: "createAccountKey",
  summary: "Create an API key for an account",
  description:
    "No other key bounds it: it has its own expiry, addresses and limits, and stays when the operator's key ends. The answer shows the key itself, this once.",
  parameters: accountParameter,
  requestBody: createAccountKeyRequest,
  example: {
    name: "First key",
    environment: "live",
    scopes: ["chat:read", "chat:write", "models:read", "usage:read", "keys:manage"],
  },
  response: { description: "The new key.", json: createdKeyShape },
  errors: [...bodyErrors, "not_found", "service_unavailable"],
};

async function create(exchange: Exchange, principal: Principal, deps: AdminKeyDeps): Promise<Response> {
  const { environment, ...request } = await readStrictBody(createAccountKeyRequest, exchange.req, deps.requestLimits());
  const { id: accountId } = await findAccount(exchange, deps);
  const context = { pepper: deps.pepper, origin: originOf(exchange, deps) };
  const { record, key, event } = createKeyAsOperator(principal, request, { accountId, environment }, context);
  await deps.keys.insertKey(record, event);
  return Response.json({ ...toWire(record, [], event.at), key }, { headers: noStore });
}

const listDoc: AdminDoc = {
  operationId: "listAccountKeys",
  summary: "List the API keys of an account",
  description: "Newest first, ended ones included.",
  parameters: accountParameter,
  query: keyQuery,
  response: { description: "One page of keys.", json: keyList },
  errors: ["invalid_request", "not_found"],
};

async function list(exchange: Exchange, _principal: Principal, deps: AdminKeyDeps): Promise<Response> {
  const { limit, after, environment } = readQuery(keyQuery, exchange.req.target);
  const { id: accountId } = await findAccount(exchange, deps);
  const page = { after, limit: limit + 1 };
  const wanted = environment === undefined ? environments : [environment];
  const found = await Promise.all(wanted.map((one) => deps.keys.listKeys({ accountId, environment: one }, page)));
  // Each list has all that could be on this page, in the order of the ids, which begin with the time.
  const newest = found
    .flat()
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, page.limit);
  const nowSeconds = deps.clock.nowSeconds();
  const data = newest.map(async (key) => toWire(key, await makersOf(key, deps), nowSeconds));
  return Response.json(pageOf(await Promise.all(data), limit));
}

const revokeDoc: AdminDoc = {
  operationId: "revokeAccountKey",
  summary: "Revoke an API key of any account",
  description:
    "At once and for good, with all keys that it made. Revoking it again changes nothing. The key in the request cannot be revoked here, nor one that it depends on.",
  parameters: [{ name: "id", in: "path", description: "Id of the key, `key_…`." }],
  response: { description: "The key's record.", json: keyShape },
  errors: ["not_found", "service_unavailable"],
};

async function revoke(exchange: Exchange, principal: Principal, deps: AdminKeyDeps): Promise<Response> {
  const id = exchange.params["id"] ?? "";
  const chain = await deps.keys.findChainById(id);
  // A member's and an app's credential end with what they are of, by the endpoints for these.
  if (chain?.keys[0].kind !== "key") throw unknownKey(id);
  const [key, ...makers] = chain.keys;
  requireOtherKey(principal, key);
  const change = revokeKeyAsOperator(principal, key, originOf(exchange, deps));
  const revoked = change && (await deps.keys.updateKey(key.id, change.changes, change.event));
  if (change) deps.changed([key.id]);
  return Response.json(toWire(revoked ?? key, makers, deps.clock.nowSeconds()));
}

async function makersOf({ parentId }: ApiKeyRecord, { keys }: AdminKeyDeps): Promise<readonly ApiKeyRecord[]> {
  return parentId === null ? [] : ((await keys.findChainById(parentId))?.keys ?? []);
}

function unknownKey(id: string): GatewayError {
  const shown = id.length > 100 ? `${id.slice(0, 100)}…` : id;
  return new GatewayError(
    "not_found",
    `There is no API key ${shown}. GET /v1/admin/accounts/{id}/keys lists the keys of an account.`,
  );
}
