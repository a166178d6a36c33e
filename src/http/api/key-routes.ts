// The endpoints that manage API keys.
import { GatewayError } from "../../base/errors.ts";
import { environments } from "../../domain/api-key.ts";
import type { KeyRotationStore } from "../../domain/key-rotation.ts";
import type { LimitStore } from "../../domain/limits/limits.ts";
import {
  type ApiKeyRecord,
  hasEnded,
  type KeyChain,
  type KeyStore,
  ownOnly,
  ownSuspender,
  type Principal,
} from "../../domain/principal.ts";
import { windowsOfKey } from "../../policy/limits-of.ts";
import { requireKeyManager } from "../../policy/manage/delegation.ts";
import {
  createKey,
  type KeySuspension,
  type KeyUpdate,
  requireKey,
  revokeKey,
  rotatedBefore,
  rotateKey,
  suspendKey,
  toWire,
  updateKey,
} from "../../policy/manage/manage-keys.ts";
import { requireResumable } from "../../policy/manage/suspension-rank.ts";
import { quotaUse } from "../../policy/quota-use.ts";
import type { Origin } from "../../policy/records/audit.ts";
import type { Throttle } from "../../policy/throttle.ts";
import {
  createdKeyShape,
  createKeyRequest,
  defaultOverlapSeconds,
  type KeyWire,
  keyDetailsShape,
  keyShape,
  revokedKeysShape,
  revokeKeysRequest,
  rotatedKeyShape,
  rotateKeyRequest,
  updateKeyRequest,
} from "../../wire/keys.ts";
import type { ScopedRoute } from "../exchange/route.ts";
import { type EndpointDeps, type Named, scopedEndpoints } from "./endpoint.ts";
import { batch, isCreatedDirectlyBy, keyList, keyQuery, keysPage } from "./key-list.ts";
import { listInTurn, listTurns } from "./list-turns.ts";

export interface KeyRouteDeps extends EndpointDeps {
  keys: KeyStore;
  keyRotations: Pick<KeyRotationStore, "isDue">;
  pepper: Uint8Array;
  throttle: Pick<Throttle, "require">;
  limits: Pick<LimitStore, "usedInWindow">;
  /** Called after each committed change of an existing key, to clear caches of the keys. */
  changed(ids?: readonly string[]): void;
}

const idParameter = [{ name: "id", in: "path", description: "Id of the key, `key_…`." }] as const;
const delegation =
  "A key can act only on keys of its own account and environment that are within its own scopes, expiry, addresses, limits and quotas. It can rotate only itself and keys that it created. `permission_denied` names the field and its bound.";

const endpoint = scopedEndpoints<KeyRouteDeps>("keys:manage", {
  tag: "Keys",
  errors: ["permission_denied"],
  admit: requireKeyManager,
});

export function keyRoutes(deps: KeyRouteDeps): ScopedRoute[] {
  return [
    create(deps),
    list(deps),
    retrieve(deps),
    update(deps),
    revoke(deps),
    rotate(deps),
    suspend(deps),
    resume(deps),
    revokeMadeBy(deps),
  ];
}

const create = endpoint("POST", "/v1/keys", {
  operationId: "createKey",
  summary: "Create an API key",
  description:
    "The new key belongs to the account and environment of its creator. It cannot exceed its creator's permissions, also counts against its creator's limits, and ends with its creator. If the request names no expiry or addresses, the new key inherits those of its creator. The API key is shown only in this response.",
  requestBody: createKeyRequest,
  example: { name: "Web shop", scopes: ["chat:write", "models:read"], allowed_ips: ["203.0.113.0/24"], rate_limit: 60 },
  response: { description: "The new key.", json: createdKeyShape },
  showsSecret: true,
  async answer({ deps, principal, body, origin }) {
    const maker = await withoutDueEnds(principal, deps);
    const { record, key, event } = createKey(maker, body, { pepper: deps.pepper, origin });
    await deps.throttle.require("change", principal);
    await deps.keys.insertKey(record, event);
    return { ...toWire(record, principal.keys, event.at), key };
  },
});

const list = endpoint("GET", "/v1/keys", {
  operationId: "listKeys",
  summary: "List the API keys of this account and environment",
  description:
    "Newest first, including ended keys. A member, or a member's key, sees only the member's keys. With `search`, `status` or `made_by`, a page may have fewer entries than `limit` if very many keys were read. `has_more` says whether more remain, and `last_id` where to continue.",
  query: keyQuery,
  response: { description: "One page of keys.", json: keyList },
  answer: ({ deps, exchange, principal, query }) =>
    listInTurn(exchange, principal, () => keysPage(query, principal, deps)),
});

const retrieve = endpoint("GET", "/v1/keys/:id", {
  operationId: "retrieveKey",
  summary: "Retrieve one API key, with the usage of its quotas",
  parameters: idParameter,
  response: { description: "The key's record.", json: keyDetailsShape },
  async answer(asked) {
    const chain = await find(asked);
    const used = await quotaUse(windowsOfKey(chain.keys[0]), asked.deps.limits);
    return { ...wireOf(chain, asked.deps), quotas_used: used };
  },
});

const update = endpoint("PATCH", "/v1/keys/:id", {
  operationId: "updateKey",
  summary: "Change an API key",
  description: `Omitted members keep their values. null clears a value. A key may narrow and rename itself. ${delegation}`,
  parameters: idParameter,
  requestBody: updateKeyRequest,
  example: { allowed_ips: ["203.0.113.7", "2001:db8::/32"], rate_limit: 30 },
  response: { description: "The key's record.", json: keyShape },
  async answer({ deps, principal, id, body, origin }) {
    const chain = await find({ deps, principal, id });
    const change = updateKey(await withoutDueEnds(principal, deps), chain, body, origin);
    if (change) await deps.throttle.require("change", principal);
    return write(chain, change, deps);
  },
});

const revoke = endpoint("DELETE", "/v1/keys/:id", {
  operationId: "revokeKey",
  summary: "Revoke an API key",
  description: `Revokes the key and all keys that it created, immediately and permanently. A key may revoke itself. Revoking it again changes nothing. ${delegation}`,
  parameters: idParameter,
  response: { description: "The key's record.", json: keyShape },
  async answer({ deps, principal, id, origin }) {
    const chain = await find({ deps, principal, id });
    // Revocation has no rate limit, because it stops a key that makes too many changes.
    return write(chain, revokeKey(principal, chain, origin), deps);
  },
});

const rotate = endpoint("POST", "/v1/keys/:id/rotate", {
  operationId: "rotateKey",
  summary: "Rotate an API key",
  description: `Creates a new key with the same attributes, expiry and budget, and revokes the old key after the overlap. Keys that the old key created now belong to the new key. If a schedule began the rotation, the old key ends no later than it announced. A rotated key cannot be rotated again, and can manage only keys that end no later than itself. ${delegation}`,
  parameters: idParameter,
  requestBody: rotateKeyRequest,
  bodyIsOptional: true,
  example: { overlap_seconds: 3_600 },
  response: { description: "The new key.", json: rotatedKeyShape },
  showsSecret: true,
  async answer({ deps, principal, id, body, origin }) {
    const chain = await find({ deps, principal, id });
    const overlapSeconds = body.overlap_seconds ?? defaultOverlapSeconds;
    const isScheduled = chain.keys[0].revokedAt !== null && (await deps.keyRotations.isDue(id));
    const context = { pepper: deps.pepper, origin, isScheduled };
    const { successor, key, revokeAt, event } = rotateKey(principal, chain, overlapSeconds, context);
    const [old, ...makers] = chain.keys;
    await deps.throttle.require("change", principal);
    const added = await deps.keys.rotateKey(old.id, successor, revokeAt, event);
    if (!added) throw rotatedBefore(null);
    deps.changed([old.id]);
    return { ...toWire(added, makers, event.at), key, replaces: old.id };
  },
});

const suspend = endpoint("POST", "/v1/keys/:id/suspend", {
  operationId: "suspendKey",
  summary: "Suspend an API key",
  description: `Refuses the key and all keys that it created within a second, on every replica, and stops their running requests, until the key is resumed. A key cannot suspend itself. ${delegation}`,
  parameters: idParameter,
  response: { description: "The key's record.", json: keyShape },
  async answer({ deps, principal, id, origin }) {
    const chain = await find({ deps, principal, id });
    return setSuspended(suspendKey(principal, chain, true, origin), { chain, deps, principal });
  },
});

const resume = endpoint("POST", "/v1/keys/:id/resume", {
  operationId: "resumeKey",
  summary: "Resume a suspended API key",
  description:
    "The key works again. Only an operator can resume a key that an operator suspended, and no member one that an owner, an admin or a key of the account suspended.",
  parameters: idParameter,
  response: { description: "The key's record.", json: keyShape },
  async answer({ deps, principal, id, origin }) {
    const chain = await find({ deps, principal, id });
    return setSuspended(suspendKey(principal, chain, false, origin), { chain, deps, principal });
  },
});

const revokeMadeBy = endpoint("POST", "/v1/keys/revoke", {
  operationId: "revokeKeysMadeBy",
  summary: "Revoke all keys that a person made",
  description:
    "Revokes all API keys of this account that the person made, and the person's own keys as a member, immediately and permanently. A signed-in owner or admin ends those of all environments, an API key those of its own. `kept` lists keys that the caller may not revoke, and the key in the request. `GET /v1/keys?made_by=…` lists the keys first.",
  requestBody: revokeKeysRequest,
  example: { made_by: "usr_01a1fbd3-d960-7275-a82c-8f140ce47bf1" },
  response: { description: "The ids of the keys.", json: revokedKeysShape },
  async answer({ deps, principal, body: { made_by: madeBy }, origin }) {
    await deps.throttle.require("change", principal);
    const [revoked, kept]: [string[], string[]] = [[], []];
    const own = ownOnly(principal);
    const { account, person } = principal;
    for (const environment of person ? environments : [principal.environment]) {
      const filter = { accountId: account.id, environment, ...(own === null ? {} : { personId: own }) };
      let after: string | undefined;
      for (;;) {
        // The loop continues even if the client has left, because all these keys must be revoked.
        const keys = await listTurns.run(account.id, () => deps.keys.listKeys(filter, { after, limit: batch }));
        const made = keys.filter((key) => !key.revoked && isCreatedDirectlyBy(key, madeBy));
        for (const { id } of made) {
          const isOwn = principal.keys.some((key) => key.id === id);
          const chain = await deps.keys.findChainById(id);
          const change = isOwn ? "denied" : chain && revocationOf(principal, chain, origin);
          if (change === "denied") kept.push(id);
          else if (change) {
            await deps.keys.updateKey(id, change.changes, change.event);
            revoked.push(id);
            deps.changed([id]);
          }
        }
        after = keys.at(-1)?.id;
        if (keys.length < batch) break;
      }
    }
    return { object: "api_key.revoked", made_by: madeBy, revoked, kept };
  },
});

function revocationOf(principal: Principal, chain: KeyChain, origin: Origin): KeyUpdate | "denied" | undefined {
  try {
    return revokeKey(principal, chain, origin);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "permission_denied") return "denied";
    throw error;
  }
}

/**
 * Returns the principal without the end times that a due rotation set. Keys that it creates pass to the successor key,
 * so they need not end with this key. If no client fetches the successor, they still end with this key.
 */
async function withoutDueEnds(principal: Principal, { keys, keyRotations }: KeyRouteDeps): Promise<Principal> {
  if (principal.keys.every(({ revokedAt }) => revokedAt === null)) return principal;
  const chain = await keys.findChainById(principal.keys[0].id);
  if (!chain) return principal;
  const [first, ...makers] = chain.keys;
  const lasting = async (key: ApiKeyRecord) =>
    key.revokedAt !== null && (await keyRotations.isDue(key.id)) ? { ...key, revokedAt: null } : key;
  return { ...principal, keys: [await lasting(first), ...(await Promise.all(makers.map(lasting)))] };
}

async function find({ deps, principal, id }: Named<KeyRouteDeps>): Promise<KeyChain> {
  return requireKey(principal, await deps.keys.findChainById(id), id);
}

async function write(chain: KeyChain, change: KeyUpdate | undefined, deps: KeyRouteDeps): Promise<KeyWire> {
  if (!change) return wireOf(chain, deps);
  const [key, ...makers] = chain.keys;
  const updated = await deps.keys.updateKey(key.id, change.changes, change.event);
  deps.changed([key.id]);
  return wireOf({ ...chain, keys: [updated ?? key, ...makers] }, deps);
}

async function setSuspended(
  to: KeySuspension | undefined,
  { chain, deps, principal }: { chain: KeyChain; deps: KeyRouteDeps; principal: Principal },
): Promise<KeyWire> {
  if (!to) return wireOf(chain, deps);
  const [key, ...makers] = chain.keys;
  await deps.throttle.require("change", principal);
  const stored = (await deps.keys.setSuspended(key.id, to.change, to.event)) ?? key;
  if (!hasEnded(stored, to.event.at)) requireResumable(ownSuspender(stored), to.change, "key");
  deps.changed([key.id]);
  return wireOf({ ...chain, keys: [stored, ...makers] }, deps);
}

function wireOf({ keys: [key, ...makers] }: KeyChain, { clock }: KeyRouteDeps): KeyWire {
  return toWire(key, makers, clock.nowSeconds());
}
