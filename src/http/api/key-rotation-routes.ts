// The endpoints of scheduled key rotation: the schedule of a key, and that of an account for all its keys.
import { z } from "zod";
import { forbidden } from "../../base/errors.ts";
import type { KeyRotation, KeyRotationStore } from "../../domain/key-rotation.ts";
import type { ApiKeyRecord, KeyChain, KeyStore } from "../../domain/principal.ts";
import { requireScope } from "../../policy/authorize.ts";
import { requireKeyManager, requireWithin } from "../../policy/manage/delegation.ts";
import { requireKey } from "../../policy/manage/manage-keys.ts";
import { auditEvent, type Origin } from "../../policy/records/audit.ts";
import type { Throttle } from "../../policy/throttle.ts";
import { defaultOverlapSeconds, maxOverlapSeconds } from "../../wire/keys.ts";
import { unixSeconds } from "../../wire/parts.ts";
import type { PersonPrincipal, PersonRoute, ScopedRoute } from "../exchange/route.ts";
import { type EndpointDeps, type Named, personEndpoints, scopedEndpoints } from "./endpoint.ts";

export interface KeyRotationRouteDeps extends EndpointDeps {
  keys: Pick<KeyStore, "findChainById">;
  keyRotations: KeyRotationStore;
  throttle: Pick<Throttle, "require">;
}

const daySeconds = 86_400;
const everyDays = z.int().min(1).max(3_650);
const overlapSeconds = z.int().min(3_600).max(maxOverlapSeconds);

const rotationRequest = z
  .object({
    every_days: everyDays.describe("Days from the creation of a key until its rotation is due."),
    overlap_seconds: overlapSeconds
      .nullish()
      .describe(`Seconds from then on for which the old key still works. Default: ${defaultOverlapSeconds}.`),
  })
  .meta({ id: "KeyRotationRequest" });

const rotationShape = z
  .object({
    object: z.literal("key_rotation"),
    every_days: everyDays.nullable().describe("Days from the creation of a key until its rotation. null: never."),
    overlap_seconds: overlapSeconds.nullable().describe("Seconds from then on for which the old key still works."),
  })
  .meta({ id: "KeyRotation" });

const keyRotationShape = rotationShape
  .extend({
    set_for: z.enum(["key", "account"]).nullable().describe("`account`: the schedule of the account applies."),
    next_at: unixSeconds.nullable().describe("Unix time of the next rotation. null: none, or the key is ending."),
    is_due: z.boolean().describe("True if the successor can be fetched with `POST /v1/keys/{id}/rotate`."),
  })
  .meta({ id: "RotationOfKey" });

const idParameter = [{ name: "id", in: "path", description: "Id of the key, `key_…`." }] as const;

const endpoint = scopedEndpoints<KeyRotationRouteDeps>("keys:manage", {
  tag: "Keys",
  errors: ["permission_denied"],
  admit: requireKeyManager,
});

const ofPerson = personEndpoints<KeyRotationRouteDeps>({
  tag: "Keys",
  errors: ["insufficient_scope", "permission_denied"],
  admit(principal) {
    requireScope(principal, "keys:manage");
    return principal;
  },
});

export function keyRotationRoutes(deps: KeyRotationRouteDeps): (ScopedRoute | PersonRoute)[] {
  return [
    ofKey(deps),
    setForKey(deps),
    removeFromKey(deps),
    ofAccount(deps),
    setForAccount(deps),
    removeFromAccount(deps),
  ];
}

const ofKey = endpoint("GET", "/v1/keys/:id/rotation", {
  operationId: "getKeyRotation",
  summary: "Retrieve the rotation schedule of an API key",
  parameters: idParameter,
  response: { description: "The schedule that applies.", json: keyRotationShape },
  answer: async (asked) => viewOf((await find(asked)).keys[0], asked.deps),
});

const setForKey = endpoint("PUT", "/v1/keys/:id/rotation", {
  operationId: "setKeyRotation",
  summary: "Schedule the rotation of an API key",
  description:
    "The schedule passes to the key's successors. If the account has a schedule too, the one with fewer days applies. Only operators schedule operators' keys. When a rotation is due, the account gets the notification `key.rotation_due`, and the old key ends after the overlap. Whoever may rotate the key fetches its successor once with `POST /v1/keys/{id}/rotate`.",
  parameters: idParameter,
  errors: ["not_found"],
  requestBody: rotationRequest,
  example: { every_days: 90, overlap_seconds: 604_800 },
  response: { description: "The schedule.", json: keyRotationShape },
  answer: ({ deps, principal, id, body, origin }) => change({ deps, principal, id }, rotationOf(body), origin),
});

const removeFromKey = endpoint("DELETE", "/v1/keys/:id/rotation", {
  operationId: "deleteKeyRotation",
  summary: "Remove the rotation schedule of an API key",
  description: "The schedule of the account still applies, if it has one. A rotation that is due already stays due.",
  parameters: idParameter,
  response: { description: "The schedule that applies now.", json: keyRotationShape },
  answer: ({ deps, principal, id, origin }) => change({ deps, principal, id }, undefined, origin),
});

const ofAccount = ofPerson("GET", "/v1/account/key-rotation", {
  operationId: "getAccountKeyRotation",
  summary: "Retrieve the rotation schedule of the account's API keys",
  response: { description: "The schedule.", json: rotationShape },
  answer: async ({ deps, principal }) => onWire(await deps.keyRotations.find(principal.account.id)),
});

const setForAccount = ofPerson("PUT", "/v1/account/key-rotation", {
  operationId: "setAccountKeyRotation",
  summary: "Schedule the rotation of all API keys of the account",
  description:
    "Applies to all environments and to members' keys, and not to operators' keys (`admin:manage`). A key with a schedule of fewer days is rotated sooner. Rotations of keys that are older than `every_days` become due within hours, at most 100 in an hour. Only owners and admins may set it.",
  requestBody: rotationRequest,
  example: { every_days: 90, overlap_seconds: 604_800 },
  response: { description: "The schedule.", json: rotationShape },
  answer: ({ deps, principal, body, origin }) => changeAccount(deps, principal, rotationOf(body), origin),
});

const removeFromAccount = ofPerson("DELETE", "/v1/account/key-rotation", {
  operationId: "deleteAccountKeyRotation",
  summary: "Remove the rotation schedule of the account's API keys",
  description: "Rotations that are due already stay due. Only owners and admins may remove it.",
  response: { description: "The schedule: none.", json: rotationShape },
  answer: ({ deps, principal, origin }) => changeAccount(deps, principal, undefined, origin),
});

async function find({ deps, principal, id }: Named<KeyRotationRouteDeps>): Promise<KeyChain> {
  return requireKey(principal, await deps.keys.findChainById(id), id);
}

async function change(asked: Named<KeyRotationRouteDeps>, rotation: KeyRotation | undefined, origin: Origin) {
  const { deps, principal } = asked;
  const chain = await find(asked);
  requireWithin(principal, chain, "change");
  const [key] = chain.keys;
  await deps.throttle.require("change", principal);
  const about = { accountId: key.accountId, targetId: key.id, detail: scheduleOf(rotation) };
  await deps.keyRotations.set(key.limitId, rotation, auditEvent("key.rotation_set", principal, origin, about));
  return await viewOf(key, deps);
}

async function changeAccount(
  deps: KeyRotationRouteDeps,
  principal: PersonPrincipal,
  rotation: KeyRotation | undefined,
  origin: Origin,
) {
  if (principal.person.role === "member") throw forbidden("Only owners and admins schedule all keys of the account.");
  await deps.throttle.require("change", principal);
  const { id } = principal.account;
  const about = { accountId: id, targetId: id, detail: scheduleOf(rotation) };
  await deps.keyRotations.set(id, rotation, auditEvent("key.rotation_set", principal, origin, about));
  return onWire(rotation);
}

function rotationOf(body: z.output<typeof rotationRequest>): KeyRotation {
  return { everyDays: body.every_days, overlapSeconds: body.overlap_seconds ?? defaultOverlapSeconds };
}

function onWire(rotation: KeyRotation | undefined) {
  return { object: "key_rotation" as const, ...scheduleOf(rotation) };
}

function scheduleOf(rotation: KeyRotation | undefined) {
  return { every_days: rotation?.everyDays ?? null, overlap_seconds: rotation?.overlapSeconds ?? null };
}

async function viewOf(key: ApiKeyRecord, { keyRotations, clock }: KeyRotationRouteDeps) {
  const own = await keyRotations.find(key.limitId);
  // The account's schedule does not apply to operators' keys: only operators may end them, but owners and admins set
  // that schedule.
  const ofAll = key.scopes.includes("admin:manage") ? undefined : await keyRotations.find(key.accountId);
  const isOwn = own !== undefined && own.everyDays <= (ofAll?.everyDays ?? Number.POSITIVE_INFINITY);
  const rotation = isOwn ? own : ofAll;
  const isEnding = key.revokedAt !== null;
  const dueAt = rotation && key.createdAt + rotation.everyDays * daySeconds;
  return {
    ...onWire(rotation),
    set_for: isOwn ? ("key" as const) : rotation ? ("account" as const) : null,
    next_at: dueAt === undefined || isEnding ? null : Math.max(dueAt, clock.nowSeconds()),
    is_due: isEnding && (await keyRotations.isDue(key.id)),
  };
}
