// The operators' endpoints for the API keys of any account.

import { z } from "zod";
import { GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { AccountStore } from "../../../domain/account.ts";
import { environments } from "../../../domain/api-key.ts";
import type { ApiKeyRecord, KeyChain, KeyStore, Principal } from "../../../domain/principal.ts";
import {
  createKeyAsOperator,
  type KeySuspension,
  type KeyUpdate,
  revokeKeyAsOperator,
  suspendKeyAsOperator,
  toWire,
} from "../../../policy/manage/manage-keys.ts";
import { requireOtherKey } from "../../../policy/manage/operator.ts";
import { createdKeyShape, createKeyRequest, keyShape } from "../../../wire/keys.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { keyList } from "../key-list.ts";
import { pageOf, pageQuery } from "../list.ts";
import { accountParameter, findAccount } from "./account-routes.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminKeyDeps extends EndpointDeps {
  accounts: Pick<AccountStore, "findAccount">;
  keys: Pick<KeyStore, "findChainById" | "insertKey" | "listKeys" | "setSuspended" | "updateKey">;
  pepper: Uint8Array;
  /** Called after each committed change, to clear caches of these keys. */
  changed(ids?: readonly string[]): void;
}

const createAccountKeyRequest = createKeyRequest
  .extend({
    scopes: createKeyRequest.shape.scopes.describe(
      "Scopes of the key, which may include `admin:manage`. Default: `chat:read chat:write models:read`.",
    ),
    environment: z.enum(environments).describe("Keys of `dev` work only in development mode."),
  })
  .meta({ id: "CreateAccountKeyRequest" });

const keyQuery = z.object({
  ...pageQuery,
  environment: z
    .enum(environments)
    .optional()
    .meta({ description: `one of ${environments.join(", ")}; by default keys of all environments` }),
});

const keyParameter = [{ name: "id", in: "path", description: "Id of the key, `key_…`." }] as const;

const endpoint = adminEndpoints<AdminKeyDeps>();

export function adminKeyRoutes(deps: AdminKeyDeps): ScopedRoute[] {
  return [create(deps), list(deps), revoke(deps), suspend(deps), resume(deps)];
}

const create = endpoint("POST", "/v1/admin/accounts/:id/keys", {
  operationId: "createAccountKey",
  summary: "Create an API key for an account",
  description:
    "No other key bounds the new key. It has its own expiry, addresses and limits, and remains when the operator's key ends. The API key is shown only in this response.",
  parameters: accountParameter,
  requestBody: createAccountKeyRequest,
  example: {
    name: "First key",
    environment: "live",
    scopes: ["chat:read", "chat:write", "models:read", "usage:read", "keys:manage"],
  },
  response: { description: "The new key.", json: createdKeyShape },
  showsSecret: true,
  async answer({ deps, principal, id, body: { environment, ...request }, origin }) {
    const { id: accountId } = await findAccount({ id, deps });
    const context = { pepper: deps.pepper, origin };
    const { record, key, event } = createKeyAsOperator(principal, request, { accountId, environment }, context);
    await deps.keys.insertKey(record, event);
    return { ...toWire(record, [], event.at), key };
  },
});

const list = endpoint("GET", "/v1/admin/accounts/:id/keys", {
  operationId: "listAccountKeys",
  summary: "List the API keys of an account",
  description: "Newest first, including ended keys.",
  parameters: accountParameter,
  query: keyQuery,
  response: { description: "One page of keys.", json: keyList },
  async answer({ deps, id, query: { limit, after, environment } }) {
    const { id: accountId } = await findAccount({ id, deps });
    const page = { after, limit: limit + 1 };
    const wanted = environment === undefined ? environments : [environment];
    const found = await Promise.all(wanted.map((one) => deps.keys.listKeys({ accountId, environment: one }, page)));
    // Merges the lists by id, because ids begin with the creation time. Each list already has enough keys for the page.
    const newest = found
      .flat()
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .slice(0, page.limit);
    const nowSeconds = deps.clock.nowSeconds();
    const data = newest.map(async (key) => toWire(key, await makersOf(key, deps), nowSeconds));
    return pageOf(await Promise.all(data), limit);
  },
});

const revoke = endpoint("DELETE", "/v1/admin/keys/:id", {
  operationId: "revokeAccountKey",
  summary: "Revoke an API key of any account",
  description:
    "Revokes the key and all keys that it created, immediately and permanently. Revoking it again changes nothing. The key in the request, and keys that it depends on, cannot be revoked here.",
  parameters: keyParameter,
  response: { description: "The key's record.", json: keyShape },
  async answer({ deps, principal, id, origin }) {
    const chain = await find(id, principal, deps);
    return write(chain, revokeKeyAsOperator(principal, chain.keys[0], origin), deps);
  },
});

const suspend = endpoint("POST", "/v1/admin/keys/:id/suspend", {
  operationId: "suspendAccountKey",
  summary: "Suspend an API key of any account",
  description:
    "Refuses the key and all keys that it created within a second, on every replica, and stops their running requests, until an operator resumes the key. The key in the request, and keys that it depends on, cannot be suspended here.",
  parameters: keyParameter,
  response: { description: "The key's record.", json: keyShape },
  async answer({ deps, principal, id, origin }) {
    const chain = await find(id, principal, deps);
    return setSuspended(chain, suspendKeyAsOperator(principal, chain.keys[0], true, origin), deps);
  },
});

const resume = endpoint("POST", "/v1/admin/keys/:id/resume", {
  operationId: "resumeAccountKey",
  summary: "Resume a suspended API key of any account",
  parameters: keyParameter,
  response: { description: "The key's record.", json: keyShape },
  async answer({ deps, principal, id, origin }) {
    const chain = await find(id, principal, deps);
    return setSuspended(chain, suspendKeyAsOperator(principal, chain.keys[0], false, origin), deps);
  },
});

/** Finds an API key. Credentials of members and apps are managed at other endpoints. */
async function find(id: string, principal: Principal, { keys }: AdminKeyDeps): Promise<KeyChain> {
  const chain = await keys.findChainById(id);
  if (chain?.keys[0].kind !== "key") throw unknownKey(id);
  requireOtherKey(principal, chain.keys[0]);
  return chain;
}

async function write({ keys: [key, ...makers] }: KeyChain, change: KeyUpdate | undefined, deps: AdminKeyDeps) {
  return toWire(await changeKey(deps, key, change), makers, deps.clock.nowSeconds());
}

async function setSuspended({ keys: [key, ...makers] }: KeyChain, to: KeySuspension | undefined, deps: AdminKeyDeps) {
  const changed = to && (await deps.keys.setSuspended(key.id, to.change, to.event));
  if (changed) deps.changed([key.id]);
  return toWire(changed ?? key, makers, deps.clock.nowSeconds());
}

/** Stores the change, unless nothing changes. Returns the key with the change. */
export async function changeKey(
  deps: Pick<AdminKeyDeps, "changed"> & { keys: Pick<KeyStore, "updateKey"> },
  key: ApiKeyRecord,
  change: KeyUpdate | undefined,
): Promise<ApiKeyRecord> {
  if (!change) return key;
  const changed = await deps.keys.updateKey(key.id, change.changes, change.event);
  deps.changed([key.id]);
  return changed ?? key;
}

async function makersOf({ parentId }: ApiKeyRecord, { keys }: AdminKeyDeps): Promise<readonly ApiKeyRecord[]> {
  return parentId === null ? [] : ((await keys.findChainById(parentId))?.keys ?? []);
}

function unknownKey(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `There is no API key ${shown(id)}. GET /v1/admin/accounts/{id}/keys lists the keys of an account.`,
  );
}
