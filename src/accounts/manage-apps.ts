// Registers, changes and deletes apps and rotates their secrets: creates the records and events that a store then
// writes.

import { timingSafeEqual } from "node:crypto";
import { GatewayError, invalidRequest } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import type { AuditEvent } from "../domain/audit.ts";
import { type Keys, keyRing } from "../domain/key-ring.ts";
import {
  type App,
  type AppChanges,
  type AppSecret,
  defaultAppScopes,
  type PublishedApp,
} from "../domain/people/app.ts";
import { actorOf, ownOnly, type Principal, type SuspensionChange, suspenderAfter } from "../domain/principal.ts";
import { type Scope, scopes } from "../domain/scope.ts";
import { keyDigest } from "../policy/credentials/key-digest.ts";
import { homepageUrl, redirectUris } from "../policy/manage/app-values.ts";
import { requireKeyManager } from "../policy/manage/delegation.ts";
import { keyTools } from "../policy/manage/key-values.ts";
import { requireResumable } from "../policy/manage/suspension-rank.ts";
import { auditEvent, changedMembers, type Origin } from "../policy/records/audit.ts";
import type { AppWire, CreateAppRequest, UpdateAppRequest } from "../wire/people/apps.ts";
import { appName } from "./app-name.ts";

const secretPrefix = "hrs_";
const secretBytes = 32;

export interface NewApp {
  app: App;
  /** The secret: shown once, never stored. null for a public app. */
  secret: string | null;
  event: AuditEvent;
}

/** Creates an app of the principal's own account and environment. A member's app belongs to the member. */
export function createApp(
  principal: Principal,
  request: CreateAppRequest,
  { pepper, origin }: { pepper: Uint8Array; origin: Origin },
): NewApp {
  requireKeyManager(principal);
  const type = request.type ?? "confidential";
  const made = type === "confidential" ? newSecret(pepper, origin.nowSeconds) : undefined;
  const app: App = {
    id: `app_${Bun.randomUUIDv7()}`,
    accountId: principal.account.id,
    personId: ownOnly(principal),
    name: appName(request.name),
    homepageUrl: homepageUrl(request.homepage_url ?? null),
    type,
    redirectUris: redirectUris(request.redirect_uris ?? []),
    scopes: inOrder(request.scopes ?? defaultAppScopes),
    tools: keyTools(request.tools ?? null),
    environment: principal.environment,
    requirePkce: pkceOf(type, request.require_pkce ?? type === "public"),
    secrets: made ? [made.record] : [],
    suspendedBy: null,
    createdBy: actorOf(principal).id,
    createdAt: origin.nowSeconds,
  };
  const detail = { environment: app.environment, type, ...attributesToWire(app) };
  return { app, secret: made?.secret ?? null, event: auditEvent("app.created", principal, origin, about(app, detail)) };
}

/** Returns the change; undefined if the request changes nothing. */
export function updateApp(
  principal: Principal,
  current: App,
  request: UpdateAppRequest,
  origin: Origin,
): { changes: AppChanges; event: AuditEvent } | undefined {
  requireKeyManager(principal);
  const wanted: AppChanges = {};
  if (request.name !== undefined) wanted.name = appName(request.name);
  if (request.homepage_url !== undefined) wanted.homepageUrl = homepageUrl(request.homepage_url);
  if (request.redirect_uris !== undefined) wanted.redirectUris = redirectUris(request.redirect_uris);
  if (request.scopes !== undefined) wanted.scopes = inOrder(request.scopes);
  if (request.tools !== undefined) wanted.tools = keyTools(request.tools);
  if (request.require_pkce !== undefined) wanted.requirePkce = pkceOf(current.type, request.require_pkce);
  const detail = changedMembers(attributesToWire(current), attributesToWire({ ...current, ...wanted }));
  if (Object.keys(detail).length === 0) return undefined;
  return { changes: wanted, event: auditEvent("app.updated", principal, origin, about(current, detail)) };
}

/** Rotates the secret. Earlier secrets work until `oldEndAt` at the latest, in Unix seconds. */
export function rotateAppSecret(
  principal: Principal,
  app: App,
  overlapSeconds: number,
  { pepper, origin }: { pepper: Uint8Array; origin: Origin },
): { secret: string; record: AppSecret; oldEndAt: number; event: AuditEvent } {
  requireKeyManager(principal);
  if (app.type === "public") {
    throw invalidRequest(
      "A public app has no secret to rotate. For an app that runs on a server, register a confidential one.",
    );
  }
  const { secret, record } = newSecret(pepper, origin.nowSeconds);
  const oldEndAt = origin.nowSeconds + overlapSeconds;
  const detail = { secret_id: record.id, overlap_seconds: overlapSeconds, old_end_at: oldEndAt };
  const event = auditEvent("app.secret_rotated", principal, origin, about(app, detail));
  return { secret, record, oldEndAt, event };
}

/** Suspends or resumes an app. Returns undefined if that changes nothing. */
export function suspendApp(
  principal: Principal,
  app: PublishedApp,
  change: SuspensionChange,
  origin: Origin,
): AuditEvent | undefined {
  requireResumable(app.suspendedBy, change, "app");
  if (suspenderAfter(app.suspendedBy, change) === app.suspendedBy) return undefined;
  const action = change.isSuspended ? "app.suspended" : "app.resumed";
  const accountId = app.unverified ? null : app.accountId;
  return auditEvent(action, principal, origin, { ...about(app, { name: app.name }), accountId });
}

export function deleteApp(principal: Principal, app: App, origin: Origin): AuditEvent {
  requireKeyManager(principal);
  return auditEvent("app.deleted", principal, origin, about(app, { name: app.name }));
}

/**
 * Returns the app, or throws `not_found`: an app of another account or environment, or of another member, does not
 * exist for the caller.
 */
export function requireApp<Found extends App>(principal: Principal, app: Found | undefined, id: string): Found {
  const own = ownOnly(principal);
  const isHere = app?.accountId === principal.account.id && app.environment === principal.environment;
  if (app && isHere && (own === null || own === app.personId)) return app;
  throw unknownApp(id);
}

export function unknownApp(id: string): GatewayError {
  const message = `There is no app ${shown(id)}. GET /v1/apps lists the apps of this environment.`;
  return new GatewayError("not_found", message);
}

/**
 * Returns the matching secret of the app, if it has not expired. The comparison time reveals nothing about the secrets.
 */
export function matchingSecret(
  app: Pick<App, "secrets">,
  secret: string,
  pepper: Keys,
  nowSeconds: number,
): AppSecret | undefined {
  let match: AppSecret | undefined;
  for (const key of keyRing(pepper)) {
    const presented = Buffer.from(keyDigest(secret, key));
    for (const one of app.secrets) {
      const isEqual = timingSafeEqual(presented, Buffer.from(one.digest));
      const isValid = one.expiresAt === null || one.expiresAt > nowSeconds;
      match = isEqual && isValid ? one : match;
    }
  }
  return match;
}

export function matchesSecret(...given: Parameters<typeof matchingSecret>): boolean {
  return matchingSecret(...given) !== undefined;
}

export function appToWire(app: App, publisher: string, nowSeconds: number): AppWire {
  return {
    object: "app",
    id: app.id,
    client_id: app.id,
    type: app.type,
    ...attributesToWire(app),
    status: app.suspendedBy === null ? "active" : "suspended",
    environment: app.environment,
    publisher,
    created_by: app.createdBy,
    created_at: app.createdAt,
    secrets: app.secrets
      .filter(({ expiresAt }) => expiresAt === null || expiresAt > nowSeconds)
      .map(({ id, last4, createdAt, expiresAt }) => ({ id, last4, created_at: createdAt, expires_at: expiresAt })),
  };
}

function newSecret(pepper: Uint8Array, nowSeconds: number): { secret: string; record: AppSecret } {
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(secretBytes)));
  const secret = `${secretPrefix}${random.toString("base64url")}`;
  const record: AppSecret = {
    id: `sec_${Bun.randomUUIDv7()}`,
    digest: keyDigest(secret, pepper),
    last4: secret.slice(-4),
    createdAt: nowSeconds,
    expiresAt: null,
  };
  return { secret, record };
}

/**
 * Requires PKCE of public apps (RFC 9700, 2.1.1), because only PKCE distinguishes such an app from another program that
 * got hold of its code.
 */
function pkceOf(type: App["type"], wanted: boolean): boolean {
  if (type === "confidential" || wanted) return wanted;
  throw invalidRequest("require_pkce: must be true, or left out, where type is public.");
}

/** Returns each scope once, in the order of `accountScopes`, because another order is not a change. */
function inOrder(wanted: readonly Scope[]): Scope[] {
  return scopes.filter((scope) => wanted.includes(scope));
}

function attributesToWire(
  app: Pick<App, "name" | "homepageUrl" | "redirectUris" | "scopes" | "tools" | "requirePkce">,
) {
  return {
    name: app.name,
    homepage_url: app.homepageUrl,
    redirect_uris: [...app.redirectUris],
    scopes: [...app.scopes],
    tools: app.tools && [...app.tools],
    require_pkce: app.requirePkce,
  };
}

function about(app: App, detail: Record<string, unknown>) {
  return { accountId: app.accountId, targetId: app.id, detail };
}
