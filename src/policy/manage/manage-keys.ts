// Creates, changes, rotates and revokes API keys: makes the records and audit events, which a store writes in one step.

import { forbidden, GatewayError, invalidRequest } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import { displayParts, type Environment, generateApiKey } from "../../domain/api-key.ts";
import type { AuditActor, AuditEvent } from "../../domain/audit.ts";
import { byName, byWire, keyAmounts } from "../../domain/limits/amounts.ts";
import {
  type ApiKeyRecord,
  actorOf,
  type ChainKey,
  hasEnded,
  type KeyChain,
  type KeyChanges,
  type KeyStatus,
  keyStatus,
  ownOnly,
  ownSuspender,
  type Principal,
  type SuspensionChange,
  suspenderAfter,
} from "../../domain/principal.ts";
import { defaultScopes, type Scope } from "../../domain/scope.ts";
import type { CreateKeyRequest, KeyWire, UpdateKeyRequest } from "../../wire/keys.ts";
import { rulesOnWire } from "../../wire/quotas.ts";
import { requireScope } from "../authorize.ts";
import { keyDigest } from "../credentials/key-digest.ts";
import { auditEvent, changedMembers, type Origin } from "../records/audit.ts";
import {
  addressesOf,
  endOf,
  modelsOf,
  priorityOf,
  requireDepth,
  requireGrantable,
  requireKeyManager,
  requireWithin,
  toolsOf,
} from "./delegation.ts";
import {
  keyAddresses,
  keyExpiry,
  keyModels,
  keyName,
  keyNote,
  keyRate,
  keyTags,
  keyTools,
  quotaRules,
} from "./key-values.ts";
import { requireResumable, suspenderOf } from "./suspension-rank.ts";

export interface NewKey {
  record: ApiKeyRecord;
  /** The secret, shown once and never stored. */
  key: string;
  event: AuditEvent;
}

interface KeyContext {
  pepper: Uint8Array;
  origin: Origin;
  /** The id of the new key, if it is chosen already. */
  id?: string;
}

export interface KeyUpdate {
  changes: KeyChanges;
  event: AuditEvent;
}

export interface KeySuspension {
  change: SuspensionChange;
  event: AuditEvent;
}

/**
 * Creates a key of the principal's own account and environment, restricted by its maker. Unless the request sets them,
 * the key inherits expiry, addresses, models, tools, priority and whether requests must stay local.
 */
export function createKey(
  principal: Principal,
  request: CreateKeyRequest,
  context: { pepper: Uint8Array; origin: Origin },
): NewKey {
  requireKeyManager(principal);
  const makers = makersOf(principal);
  const values = valuesOf(request, context.origin.nowSeconds, principal.scopes);
  const record: Attributes = {
    ...values,
    // The inherited expiry is stored with the key, so that its record shows when it ends.
    expiresAt: values.expiresAt ?? endOf(principal),
    allowedIps: values.allowedIps.length > 0 ? values.allowedIps : (addressesOf(principal) ?? []),
    models: values.models ?? modelsOf(principal) ?? null,
    tools: values.tools ?? toolsOf(principal) ?? null,
    neverLeaves: request.never_leaves ?? principal.modelAccess?.neverLeaves ?? false,
    priority: values.priority ?? priorityOf(principal),
  };
  requireGrantable(principal, makers, record, "makes");
  const owner = { accountId: principal.account.id, environment: principal.environment };
  const whose = { personId: ownOnly(principal), parentId: makers[0]?.id ?? null, createdBy: actorOf(principal).id };
  return newKey(principal, { ...owner, ...whose, ...record }, context);
}

/**
 * Creates a key without a maker, of any account and environment. Needs `admin:manage`. A further operator's key is
 * created like any other key: within the creating key's environment, expiry and addresses, and not with a token.
 */
export function createKeyAsOperator(
  principal: Principal,
  request: CreateKeyRequest,
  owner: { accountId: string; environment: Environment },
  context: KeyContext,
): NewKey {
  requireScope(principal, "admin:manage");
  const values = valuesOf(request, context.origin.nowSeconds, new Set(defaultScopes));
  requireGivable(principal, values, owner.environment, "makes");
  return newKey(
    principal,
    { ...owner, personId: null, parentId: null, createdBy: actorOf(principal).id, ...values },
    context,
  );
}

/**
 * Gives a key without a maker, of any account, all values of the request. Omitted values become the defaults. Returns
 * undefined if nothing changes. Needs `admin:manage`.
 */
export function replaceKeyAsOperator(
  principal: Principal,
  current: ApiKeyRecord,
  request: CreateKeyRequest,
  origin: Origin,
): KeyUpdate | undefined {
  requireScope(principal, "admin:manage");
  const wanted = valuesOf(request, origin.nowSeconds, new Set(defaultScopes));
  requireGivable(principal, wanted, current.environment, "changes");
  const changes = differences(current, wanted);
  if (Object.keys(changes).length === 0) return undefined;
  const detail = changedMembers(attributesToWire(current), attributesToWire({ ...current, ...changes }));
  return { changes, event: auditEvent("key.updated", principal, origin, about(current, detail)) };
}

/** Throws if an operator must not give these values to a key without a maker. */
function requireGivable(
  principal: Principal,
  values: Attributes,
  environment: Environment,
  verb: "makes" | "changes",
): void {
  // An operator's key with access to few models must not create itself one with access to more.
  const { models, tools, neverLeaves } = values;
  requireGrantable(principal, [], { models, tools, neverLeaves }, verb);
  if (!values.scopes.includes("admin:manage")) return;
  if (principal.tokenExpiresAt !== undefined || environment !== principal.environment) {
    throw forbidden(
      "scopes: admin:manage is given only by an API key, not by a token, and only in the key's own environment; `headrace operator-key` makes others.",
    );
  }
  requireGrantable(principal, [], values, verb);
}

/** Creates a key without a maker, for an operator with access to the data directory. */
export function createKeyAtConsole(
  request: CreateKeyRequest,
  owner: { accountId: string; environment: Environment },
  context: { pepper: Uint8Array; origin: Origin },
): NewKey {
  const values = valuesOf(request, context.origin.nowSeconds, new Set(defaultScopes));
  return newKey(
    { type: "operator" },
    { ...owner, personId: null, parentId: null, createdBy: null, ...values },
    context,
  );
}

/**
 * Returns the makers of a new key. Keys that owners and admins create belong to the account and do not end with their
 * membership.
 */
function makersOf(principal: Principal): readonly ChainKey[] {
  const { person, keys } = principal;
  if (!person) {
    requireDepth(principal);
    return keys;
  }
  if (person.role !== "member") return [];
  // The membership and not the login is the maker: keys that a person creates outlive the login.
  const membership = keys.find(({ kind }) => kind === "membership");
  if (membership) return [membership];
  throw forbidden("Only a member of the account may make keys.");
}

/** Changes a key. Returns undefined if the request changes nothing. */
export function updateKey(
  principal: Principal,
  target: KeyChain,
  request: UpdateKeyRequest,
  origin: Origin,
): KeyUpdate | undefined {
  requireKeyManager(principal);
  requireWithin(principal, target, "change");
  const [current, ...makers] = target.keys;
  requireActive(target, origin.nowSeconds, "changed");
  const wanted: Attributes = {
    name: request.name === undefined ? current.name : keyName(request.name),
    scopes: request.scopes === undefined ? current.scopes : [...new Set(request.scopes)],
    expiresAt: request.expires_at === undefined ? current.expiresAt : keyExpiry(request.expires_at, origin.nowSeconds),
    allowedIps: request.allowed_ips === undefined ? current.allowedIps : keyAddresses(request.allowed_ips),
    ...keyRate(request, current),
    ...byName(keyAmounts, ({ name, wire }) => (request[wire] === undefined ? current[name] : request[wire])),
    quotas: request.quotas === undefined ? current.quotas : quotaRules(request.quotas),
    models: request.models === undefined ? current.models : keyModels(request.models),
    tools: request.tools === undefined ? current.tools : keyTools(request.tools),
    neverLeaves: request.never_leaves ?? current.neverLeaves,
    priority: request.priority === undefined ? current.priority : request.priority,
    responseCache: request.response_cache === undefined ? current.responseCache : request.response_cache,
    tags: request.tags === undefined ? current.tags : keyTags(request.tags),
    note: request.note === undefined ? current.note : keyNote(request.note),
  };
  const changes = differences(current, wanted);
  if (Object.keys(changes).length === 0) return undefined;
  requireGrantable(principal, makers, changes, "changes");
  const detail = changedMembers(attributesToWire(current), attributesToWire({ ...current, ...changes }));
  return { changes, event: auditEvent("key.updated", principal, origin, about(current, detail)) };
}

/** Revokes a key. Returns undefined if the key has already ended. */
export function revokeKey(principal: Principal, target: KeyChain, origin: Origin): KeyUpdate | undefined {
  requireKeyManager(principal);
  requireWithin(principal, target, "revoke");
  return revocation(principal, target.keys[0], origin);
}

/** Suspends or resumes a key. Returns undefined if that changes nothing. */
export function suspendKey(
  principal: Principal,
  target: KeyChain,
  isSuspended: boolean,
  origin: Origin,
): KeySuspension | undefined {
  requireKeyManager(principal);
  requireWithin(principal, target, isSuspended ? "suspend" : "resume");
  const [key] = target.keys;
  if (principal.keys[0].id === key.id) throw forbidden("A key cannot suspend itself. Use another one.");
  return suspension(principal, key, { by: suspenderOf(principal), isSuspended }, origin);
}

/** Suspends or resumes any key of any account. Needs `admin:manage`. */
export function suspendKeyAsOperator(
  principal: Principal,
  key: ApiKeyRecord,
  isSuspended: boolean,
  origin: Origin,
): KeySuspension | undefined {
  requireScope(principal, "admin:manage");
  return suspension(principal, key, { by: "operator", isSuspended }, origin);
}

/** Revokes any key of any account. Needs `admin:manage`. */
export function revokeKeyAsOperator(principal: Principal, key: ApiKeyRecord, origin: Origin): KeyUpdate | undefined {
  requireScope(principal, "admin:manage");
  return revocation(principal, key, origin);
}

/**
 * Replaces a key by a successor with the same attributes, makers, children and budget. The old key ends at `revokeAt`.
 * A key that is ending already can be rotated only if its schedule began the rotation.
 */
export function rotateKey(
  principal: Principal,
  target: KeyChain,
  overlapSeconds: number,
  context: { pepper: Uint8Array; origin: Origin; isScheduled?: boolean },
): { successor: ApiKeyRecord; key: string; revokeAt: number; event: AuditEvent } {
  const { nowSeconds } = context.origin;
  requireKeyManager(principal);
  requireActive(target, nowSeconds, "rotated");
  requireWithin(principal, target, "rotate");
  const [old] = target.keys;
  if (old.revokedAt !== null && !context.isScheduled) throw rotatedBefore(old.revokedAt);
  const { key, identity } = newIdentity(old.environment, context.pepper);
  const successor: ApiKeyRecord = {
    ...old,
    ...identity,
    // A key that fetches its own successor keeps the person who made it: revoking that person's keys ends both.
    createdBy: actorOf(principal).id === old.id ? old.createdBy : actorOf(principal).id,
    createdAt: nowSeconds,
    lastUsedAt: null,
    revokedAt: null,
  };
  const revokeAt = Math.min(nowSeconds + overlapSeconds, old.revokedAt ?? Number.POSITIVE_INFINITY);
  const detail = { successor_id: successor.id, overlap_seconds: overlapSeconds, revoked_at: revokeAt };
  const event = auditEvent("key.rotated", principal, context.origin, about(old, detail));
  return { successor, key, revokeAt, event };
}

/** Returns the error for a rotation that another rotation or a revocation has overtaken. */
export function rotatedBefore(revokedAt: number | null): GatewayError {
  const when = revokedAt === null ? "" : ` at ${revokedAt}`;
  return invalidRequest(
    `This key was rotated or revoked before and ends${when}: rotate its successor, or create a new key.`,
  );
}

/** Returns the key. Throws `not_found` for a missing key and for one of another account or environment. */
export function requireKey(principal: Principal, chain: KeyChain | undefined, id: string): KeyChain {
  const key = chain?.keys[0];
  if (chain && key?.kind === "key" && isHere(principal, key)) return chain;
  throw new GatewayError(
    "not_found",
    `There is no API key ${shown(id)}. GET /v1/keys lists the keys of this environment.`,
  );
}

/**
 * Reports whether the principal may see this credential. It must be in the principal's account and environment; members
 * see only their own.
 */
export function isHere(
  principal: Principal,
  { accountId, environment, personId }: Pick<ApiKeyRecord, "accountId" | "environment" | "personId">,
): boolean {
  const own = ownOnly(principal);
  const isOwn = own === null || own === personId;
  return isOwn && accountId === principal.account.id && environment === principal.environment;
}

/** Converts a key to wire form. A key ends as soon as one of its `makers` ends. */
export function toWire(record: ApiKeyRecord, makers: readonly ChainKey[], nowSeconds: number): KeyWire {
  const { name, scopes, ...attributes } = attributesToWire(record);
  return {
    object: "api_key",
    id: record.id,
    name,
    prefix: record.prefix,
    last4: record.last4,
    environment: record.environment,
    scopes,
    status: chainStatus([record, ...makers], nowSeconds),
    created_by: record.createdBy,
    created_at: record.createdAt,
    last_used_at: record.lastUsedAt,
    revoked_at: record.revokedAt,
    ...attributes,
  };
}

/** The attributes that a request may set. */
type Attributes = Required<Omit<KeyChanges, "revokedAt">>;

/**
 * Converts and checks the values of a request. `mayGive` restricts only the default scopes; requested scopes are
 * checked elsewhere.
 */
function valuesOf(request: CreateKeyRequest, nowSeconds: number, mayGive: ReadonlySet<Scope>): Attributes {
  const { expires_at: expiresAt = null, expires_in: expiresIn = null } = request;
  if (expiresAt !== null && expiresIn !== null) {
    throw invalidRequest("expires_in: send either expires_at or expires_in, not both.");
  }
  const scopes = request.scopes ? [...new Set(request.scopes)] : defaultScopes.filter((scope) => mayGive.has(scope));
  if (scopes.length === 0) {
    throw invalidRequest(
      `scopes: name at least one; the key that makes it has none of the default ones, ${defaultScopes.join(", ")}.`,
    );
  }
  return {
    name: keyName(request.name),
    scopes,
    expiresAt: expiresIn === null ? keyExpiry(expiresAt, nowSeconds) : nowSeconds + expiresIn,
    allowedIps: keyAddresses(request.allowed_ips ?? null),
    ...keyRate({ rate_limit: request.rate_limit ?? null, rate_limit_window: request.rate_limit_window }),
    ...byName(keyAmounts, ({ wire }) => request[wire] ?? null),
    quotas: quotaRules(request.quotas ?? null),
    models: keyModels(request.models ?? null),
    tools: keyTools(request.tools ?? null),
    neverLeaves: request.never_leaves ?? false,
    priority: request.priority ?? null,
    responseCache: request.response_cache ?? null,
    tags: keyTags(request.tags ?? null),
    note: keyNote(request.note ?? null),
  };
}

function newKey(
  by: Principal | AuditActor,
  values: Attributes & Pick<ApiKeyRecord, "accountId" | "environment" | "personId" | "createdBy" | "parentId">,
  { pepper, origin, id }: KeyContext,
): NewKey {
  const { key, identity } = newIdentity(values.environment, pepper, id);
  const record: ApiKeyRecord = {
    ...values,
    ...identity,
    kind: "key",
    appId: null,
    role: null,
    seesAllUsage: false,
    limitId: identity.id,
    createdAt: origin.nowSeconds,
    revokedAt: null,
    revoked: false,
    lastUsedAt: null,
    suspendedBy: null,
  };
  const detail = { environment: record.environment, parent_id: record.parentId, ...attributesToWire(record) };
  return { record, key, event: auditEvent("key.created", by, origin, about(record, detail)) };
}

function newIdentity(environment: Environment, pepper: Uint8Array, id = `key_${Bun.randomUUIDv7()}`) {
  const key = generateApiKey(environment);
  return { key, identity: { id, digest: keyDigest(key, pepper), ...displayParts(key) } };
}

function revocation(principal: Principal, key: ApiKeyRecord, origin: Origin): KeyUpdate | undefined {
  // A revocation whose time has come is not final yet. It becomes final here.
  if (key.revoked || keyStatus(key, origin.nowSeconds) === "expired") return undefined;
  const detail = { revoked_at: { before: key.revokedAt, after: origin.nowSeconds } };
  const event = auditEvent("key.revoked", principal, origin, about(key, detail));
  return { changes: { revokedAt: origin.nowSeconds }, event };
}

function suspension(
  principal: Principal,
  key: ApiKeyRecord,
  change: SuspensionChange,
  origin: Origin,
): KeySuspension | undefined {
  const stored = ownSuspender(key);
  if (hasEnded(key, origin.nowSeconds)) return undefined;
  requireResumable(stored, change, "key");
  if (suspenderAfter(stored, change) === stored) return undefined;
  const action = change.isSuspended ? "key.suspended" : "key.resumed";
  const event = auditEvent(action, principal, origin, about(key, { name: key.name }));
  return { change, event };
}

function requireActive({ keys }: KeyChain, nowSeconds: number, participle: string): void {
  const status = chainStatus(keys, nowSeconds);
  if (status === "active") return;
  if (status === "suspended") throw invalidRequest(`This key is suspended. Resume it before it is ${participle}.`);
  throw invalidRequest(`This key is ${status}, which is final: it cannot be ${participle}. Create a new key instead.`);
}

function chainStatus(keys: readonly ChainKey[], nowSeconds: number): KeyStatus {
  const states = keys.map((key) => keyStatus(key, nowSeconds));
  const order = ["revoked", "expired", "suspended"] as const;
  return order.find((status) => states.includes(status)) ?? "active";
}

function differences(current: ApiKeyRecord, wanted: Attributes): KeyChanges {
  const changes: KeyChanges = {};
  const sameScopes = new Set(wanted.scopes).symmetricDifference(new Set(current.scopes)).size === 0;
  if (wanted.name !== current.name) changes.name = wanted.name;
  if (!sameScopes) changes.scopes = wanted.scopes;
  if (wanted.expiresAt !== current.expiresAt) changes.expiresAt = wanted.expiresAt;
  if (!Bun.deepEquals(wanted.allowedIps, current.allowedIps)) changes.allowedIps = wanted.allowedIps;
  if (wanted.rateLimit !== current.rateLimit || wanted.rateLimitWindow !== current.rateLimitWindow) {
    // The limit and its window are always written together: one has no meaning without the other, even if another
    // request changes the key at the same time.
    changes.rateLimit = wanted.rateLimit;
    changes.rateLimitWindow = wanted.rateLimitWindow;
  }
  for (const { name } of keyAmounts) if (wanted[name] !== current[name]) changes[name] = wanted[name];
  if (!Bun.deepEquals(wanted.quotas, current.quotas)) changes.quotas = wanted.quotas;
  if (!Bun.deepEquals(wanted.models, current.models)) changes.models = wanted.models;
  if (!Bun.deepEquals(wanted.tools, current.tools)) changes.tools = wanted.tools;
  if (wanted.neverLeaves !== current.neverLeaves) changes.neverLeaves = wanted.neverLeaves;
  if (wanted.priority !== current.priority) changes.priority = wanted.priority;
  if (wanted.responseCache !== current.responseCache) changes.responseCache = wanted.responseCache;
  if (!Bun.deepEquals(wanted.tags, current.tags)) changes.tags = wanted.tags;
  if (wanted.note !== current.note) changes.note = wanted.note;
  return changes;
}

/** Returns the attributes that a request may set. */
export function attributesToWire(attributes: Attributes) {
  return {
    name: attributes.name,
    scopes: [...attributes.scopes],
    expires_at: attributes.expiresAt,
    allowed_ips: [...attributes.allowedIps],
    rate_limit: attributes.rateLimit,
    rate_limit_window: attributes.rateLimitWindow,
    ...byWire(keyAmounts, ({ name }) => attributes[name]),
    quotas: rulesOnWire(attributes.quotas),
    models: attributes.models && [...attributes.models],
    tools: attributes.tools && [...attributes.tools],
    never_leaves: attributes.neverLeaves,
    priority: attributes.priority,
    response_cache: attributes.responseCache,
    tags: [...attributes.tags],
    note: attributes.note,
  };
}

function about(key: ApiKeyRecord, detail: Record<string, unknown>) {
  return { accountId: key.accountId, targetId: key.id, detail };
}
