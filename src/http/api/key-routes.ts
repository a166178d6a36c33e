// The endpoints that manage API keys.
import type { Clock } from "../../base/clock.ts";
import type { KeyChain, KeyStore, Principal } from "../../domain/principal.ts";
import { requireKeyManager } from "../../policy/manage/delegation.ts";
import {
  createKey,
  type KeyUpdate,
  requireKey,
  revokeKey,
  rotatedBefore,
  rotateKey,
  toWire,
  updateKey,
} from "../../policy/manage/manage-keys.ts";
import type { Throttle } from "../../policy/throttle.ts";
import {
  createdKeyShape,
  createKeyRequest,
  defaultOverlapSeconds,
  keyShape,
  rotatedKeyShape,
  rotateKeyRequest,
  updateKeyRequest,
} from "../../wire/keys.ts";
import type { BodyLimits } from "../content/body.ts";
import { readStrictBody } from "../decode/strict-body.ts";
import type { Exchange, RouteDoc, ScopedRoute } from "../exchange/route.ts";
import { bodyErrors, noStore, originOf } from "./changes.ts";
import { keyList, keyQuery, keysPage } from "./key-list.ts";

export interface KeyRouteDeps {
  keys: KeyStore;
  pepper: Uint8Array;
  throttle: Pick<Throttle, "require">;
  clock: Clock;
  /** Read for every request: a reload may change them. */
  limits(): BodyLimits;
  /** Called after each committed change of what is there already, so that whoever remembers keys forgets them. */
  changed(ids?: readonly string[]): void;
}

const changeErrors = [...bodyErrors, "rate_limit_exceeded"] as const;
const idParameter = [{ name: "id", in: "path", description: "Id of the key, `key_…`." }] as const;
const delegation =
  "A key acts only on keys of its own account and environment that are within its own scopes, expiry, addresses, limits and quotas, and rotates only itself and those that it made. `permission_denied` names the field and its bound.";

export function keyRoutes(deps: KeyRouteDeps): ScopedRoute[] {
  const route = (
    method: ScopedRoute["method"],
    path: string,
    doc: Omit<RouteDoc, "tag">,
    handle: (exchange: Exchange, principal: Principal, deps: KeyRouteDeps) => Promise<Response>,
  ): ScopedRoute => ({
    method,
    path,
    access: "keys:manage",
    doc: { ...doc, tag: "Keys", errors: [...(doc.errors ?? []), "permission_denied", "service_unavailable"] },
    handle(exchange, principal) {
      requireKeyManager(principal);
      return handle(exchange, principal, deps);
    },
  });
  return [
    route("POST", "/v1/keys", createDoc, create),
    route("GET", "/v1/keys", listDoc, list),
    route("GET", "/v1/keys/:id", retrieveDoc, retrieve),
    route("PATCH", "/v1/keys/:id", updateDoc, update),
    route("DELETE", "/v1/keys/:id", revokeDoc, revoke),
    route("POST", "/v1/keys/:id/rotate", rotateDoc, rotate),
  ];
}

const createDoc: Omit<RouteDoc, "tag"> = {
  operationId: "createKey",
  summary: "Create an API key",
  description:
    "The key is of the account and environment of the key that makes it, never wider than that one, counts against its limits as well, and ends with it. Where the maker has an expiry or addresses and the request names none, the new key gets the maker's. The answer shows the key itself, this once.",
  requestBody: createKeyRequest,
  example: { name: "Web shop", scopes: ["chat:write", "models:read"], allowed_ips: ["203.0.113.0/24"], rate_limit: 60 },
  response: { description: "The new key.", json: createdKeyShape },
  errors: changeErrors,
};

async function create(exchange: Exchange, principal: Principal, deps: KeyRouteDeps): Promise<Response> {
  const request = await readStrictBody(createKeyRequest, exchange.req, deps.limits());
  const { pepper } = deps;
  const { record, key, event } = createKey(principal, request, { pepper, origin: originOf(exchange, deps) });
  await deps.throttle.require("change", principal);
  await deps.keys.insertKey(record, event);
  return Response.json({ ...toWire(record, principal.keys, event.at), key }, { headers: noStore });
}

const listDoc: Omit<RouteDoc, "tag"> = {
  operationId: "listKeys",
  summary: "List the API keys of this account and environment",
  description:
    "Newest first, ended ones included. A member, and a member's key, sees the member's own. With `search` or `status`, a page may hold fewer than `limit` where very many were looked at: `has_more` says whether there are others to look at, and `last_id` where to go on.",
  query: keyQuery,
  response: { description: "One page of keys.", json: keyList },
  errors: ["invalid_request"],
};

async function list({ req }: Exchange, principal: Principal, deps: KeyRouteDeps): Promise<Response> {
  return Response.json(await keysPage(req.target, principal, deps));
}

const retrieveDoc: Omit<RouteDoc, "tag"> = {
  operationId: "retrieveKey",
  summary: "Retrieve one API key",
  parameters: idParameter,
  response: { description: "The key's record.", json: keyShape },
  errors: ["not_found"],
};

async function retrieve(exchange: Exchange, principal: Principal, deps: KeyRouteDeps): Promise<Response> {
  return answer(await find(exchange, principal, deps), deps);
}

const updateDoc: Omit<RouteDoc, "tag"> = {
  operationId: "updateKey",
  summary: "Change an API key",
  description: `What is left out stays as it is; null clears. A key may narrow and rename itself. ${delegation}`,
  parameters: idParameter,
  requestBody: updateKeyRequest,
  example: { allowed_ips: ["203.0.113.7", "2001:db8::/32"], rate_limit: 30 },
  response: { description: "The key's record.", json: keyShape },
  errors: [...changeErrors, "not_found"],
};

async function update(exchange: Exchange, principal: Principal, deps: KeyRouteDeps): Promise<Response> {
  const request = await readStrictBody(updateKeyRequest, exchange.req, deps.limits());
  const chain = await find(exchange, principal, deps);
  const change = updateKey(principal, chain, request, originOf(exchange, deps));
  if (change) await deps.throttle.require("change", principal);
  return write(chain, change, deps);
}

const revokeDoc: Omit<RouteDoc, "tag"> = {
  operationId: "revokeKey",
  summary: "Revoke an API key",
  description: `At once and for good, with all keys that it made. A key may revoke itself. Revoking it again changes nothing. ${delegation}`,
  parameters: idParameter,
  response: { description: "The key's record.", json: keyShape },
  errors: ["not_found"],
};

async function revoke(exchange: Exchange, principal: Principal, deps: KeyRouteDeps): Promise<Response> {
  const chain = await find(exchange, principal, deps);
  // Never throttled: it is what ends whoever makes too many changes.
  return write(chain, revokeKey(principal, chain, originOf(exchange, deps)), deps);
}

const rotateDoc: Omit<RouteDoc, "tag"> = {
  operationId: "rotateKey",
  summary: "Rotate an API key",
  description: `Makes a new key with the same attributes, expiry and budget, and revokes the old one after the overlap. Keys that the old one made belong to the new one from then on. A key that was rotated cannot be rotated again, and manages only keys that end no later than itself. ${delegation}`,
  parameters: idParameter,
  requestBody: rotateKeyRequest,
  example: { overlap_seconds: 3_600 },
  response: { description: "The new key.", json: rotatedKeyShape },
  errors: [...changeErrors, "not_found"],
};

async function rotate(exchange: Exchange, principal: Principal, deps: KeyRouteDeps): Promise<Response> {
  const { keys, pepper, limits } = deps;
  const { req } = exchange;
  const request = !req.hasBody ? {} : await readStrictBody(rotateKeyRequest, req, limits());
  const chain = await find(exchange, principal, deps);
  const overlapSeconds = request.overlap_seconds ?? defaultOverlapSeconds;
  const context = { pepper, origin: originOf(exchange, deps) };
  const { successor, key, revokeAt, event } = rotateKey(principal, chain, overlapSeconds, context);
  const [old, ...makers] = chain.keys;
  await deps.throttle.require("change", principal);
  const added = await keys.rotateKey(old.id, successor, revokeAt, event);
  if (!added) throw rotatedBefore(null);
  deps.changed([old.id]);
  return Response.json({ ...toWire(added, makers, event.at), key, replaces: old.id }, { headers: noStore });
}

async function find({ params }: Exchange, principal: Principal, { keys }: KeyRouteDeps): Promise<KeyChain> {
  const id = params["id"] ?? "";
  return requireKey(principal, await keys.findChainById(id), id);
}

async function write(chain: KeyChain, change: KeyUpdate | undefined, deps: KeyRouteDeps): Promise<Response> {
  if (!change) return answer(chain, deps);
  const [key, ...makers] = chain.keys;
  const updated = await deps.keys.updateKey(key.id, change.changes, change.event);
  deps.changed([key.id]);
  return answer({ ...chain, keys: [updated ?? key, ...makers] }, deps);
}

function answer({ keys: [key, ...makers] }: KeyChain, { clock }: KeyRouteDeps): Response {
  return Response.json(toWire(key, makers, clock.nowSeconds()));
}
