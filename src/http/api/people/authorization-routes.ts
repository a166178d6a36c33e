// The endpoints where people list and revoke the OAuth apps that they authorized.

import { z } from "zod";
import { GatewayError, invalidRequest } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import type { AllowedApp, OAuthStore } from "../../../domain/people/oauth.ts";
import { windowsOfKey } from "../../../policy/limits-of.ts";
import { keyTools, quotaRules } from "../../../policy/manage/key-values.ts";
import { quotaUse } from "../../../policy/quota-use.ts";
import { auditEvent, changedMembers } from "../../../policy/records/audit.ts";
import {
  type AuthorizationWire,
  authorizationDetailsShape,
  authorizationShape,
  deletedAuthorizationShape,
  updateAuthorizationRequest,
} from "../../../wire/people/apps.ts";
import { rulesOnWire } from "../../../wire/quotas.ts";
import type { PersonRoute } from "../../exchange/route.ts";
import { type EndpointDeps, personEndpoints } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";

export interface AuthorizationRouteDeps extends EndpointDeps {
  oauth: Pick<OAuthStore, "listAllowedApps" | "limitAllowedApp" | "revokeAllowedApp">;
  limits: Pick<LimitStore, "usedInWindow">;
  /** Called after each revocation, to clear caches of the grant. */
  changed(ids?: readonly string[]): void;
}

const idParameter = { name: "id", in: "path", description: "Id as in the list, `app_…:acct_…`." } as const;
const authorizationQuery = z.object(pageQuery);
const authorizationList = listOf(authorizationShape, "AuthorizationList");

const endpoint = personEndpoints<AuthorizationRouteDeps>({ tag: "Apps", errors: [], admit: (principal) => principal });

export function authorizationRoutes(deps: AuthorizationRouteDeps): PersonRoute[] {
  return [list(deps), retrieve(deps), limit(deps), revoke(deps)];
}

const list = endpoint("GET", "/v1/authorizations", {
  operationId: "listAuthorizations",
  summary: "List the apps that you allowed",
  description: "Covers all your accounts and environments, including logins of the command line tool.",
  query: authorizationQuery,
  response: { description: "One page of authorizations.", json: authorizationList },
  async answer({ deps: { oauth, clock }, principal: { person }, query: { limit, after } }) {
    const all = (await oauth.listAllowedApps(person.id, clock.nowSeconds())).map(toWire);
    // The last entry with this id counts, because logins of the command line tool may have the same id in several
    // environments.
    const index = after === undefined ? -1 : all.findLastIndex(({ id }) => id === after);
    if (after !== undefined && index < 0) {
      throw invalidRequest("after: must be an id of this list, such as the last one shown.");
    }
    return pageOf(all.slice(index + 1), limit);
  },
});

const retrieve = endpoint("GET", "/v1/authorizations/:id", {
  operationId: "retrieveAuthorization",
  summary: "Retrieve the authorization of one app, with the usage of its quotas",
  description: "Shows the requested environment, or otherwise one in which the app is authorized.",
  parameters: [idParameter],
  response: { description: "Authorization of the app.", json: authorizationDetailsShape },
  async answer({ deps: { oauth, limits, clock }, principal: { person, environment }, id: wanted }) {
    const all = (await oauth.listAllowedApps(person.id, clock.nowSeconds())).filter((one) => idOf(one) === wanted);
    const allowed = all.find((one) => one.environment === environment) ?? all[0];
    if (!allowed) throw nothingAllowed(wanted);
    return { ...toWire(allowed), quotas_used: await quotaUse(windowsOfKey({ ...allowed, kind: "grant" }), limits) };
  },
});

const limit = endpoint("PATCH", "/v1/authorizations/:id", {
  operationId: "limitAuthorization",
  summary: "Set the quotas and tools of an app that you allowed",
  description:
    "Sets quotas per window, shared by all tokens of the app for this account, in each environment. Your own quotas and the account's still apply. Also sets the tools that the app may use, among the tools that you may use. The settings last as long as the authorization. If you authorize the app again, you choose the tools at that time.",
  parameters: [idParameter],
  requestBody: updateAuthorizationRequest,
  example: { quotas: [{ unit: "usd", amount: 1, per: "day" }] },
  response: { description: "Authorization of the app.", json: authorizationShape },
  async answer({ deps: { oauth, changed }, principal, id, body, origin }) {
    const { person } = principal;
    const allowed = (await oauth.listAllowedApps(person.id, origin.nowSeconds)).find((one) => idOf(one) === id);
    if (!allowed) throw nothingAllowed(id);
    const quotas = body.quotas === undefined ? allowed.quotas : quotaRules(body.quotas);
    const tools = body.tools === undefined ? allowed.tools : keyTools(body.tools);
    const wanted = { ...allowed, quotas, tools };
    const detail = changedMembers(boundsToWire(allowed), boundsToWire(wanted));
    if (Object.keys(detail).length === 0) return toWire(allowed);
    const { appId, accountId } = allowed;
    const event = auditEvent("grant.limited", principal, origin, { accountId, targetId: appId, detail });
    const bounds = { ...("quotas" in detail && { quotas }), ...("tools" in detail && { tools }) };
    const limited = await oauth.limitAllowedApp({ personId: person.id, appId, accountId }, bounds, event);
    if (limited === 0) throw nothingAllowed(id);
    changed([person.id]);
    return toWire(wanted);
  },
});

const revoke = endpoint("DELETE", "/v1/authorizations/:id", {
  operationId: "revokeAuthorization",
  summary: "Revoke the authorization of an app",
  description: "The app's tokens for this account are refused immediately. The app may ask for authorization again.",
  parameters: [idParameter],
  response: { description: "The authorization is revoked.", json: deletedAuthorizationShape },
  async answer({ deps: { oauth, changed }, principal, id: wanted, origin }) {
    const { person } = principal;
    const all = await oauth.listAllowedApps(person.id, origin.nowSeconds);
    const allowed = all.find((one) => idOf(one) === wanted);
    if (!allowed) throw nothingAllowed(wanted);
    const { appId, accountId, environment, scopes } = allowed;
    const detail = { environment, scopes };
    const event = auditEvent("grant.revoked", principal, origin, { accountId, targetId: appId, detail });
    const ended = await oauth.revokeAllowedApp(person.id, appId, accountId, event);
    if (ended === 0) throw nothingAllowed(wanted);
    changed([person.id]);
    return { object: "authorization", id: wanted, deleted: true };
  },
});

function toWire(allowed: AllowedApp): AuthorizationWire {
  const { appId, appName, publisher, homepageUrl, accountId, accountName } = allowed;
  return {
    object: "authorization",
    id: idOf(allowed),
    app: { id: appId, name: appName, publisher, homepage_url: homepageUrl },
    account: { id: accountId, name: accountName },
    environment: allowed.environment,
    scopes: [...allowed.scopes],
    ...boundsToWire(allowed),
    allowed_at: allowed.allowedAt,
    last_used_at: allowed.lastUsedAt,
  };
}

/** Returns the quotas and tools of an authorization, which the person may change. */
function boundsToWire({ quotas, tools }: Pick<AllowedApp, "quotas" | "tools">) {
  return { tools: tools && [...tools], quotas: rulesOnWire(quotas) };
}

/** A colon separates the ids, because neither contains one. */
function idOf({ appId, accountId }: AllowedApp): string {
  return `${appId}:${accountId}`;
}

function nothingAllowed(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `You have allowed nothing under ${shown(id, 200)}, or not any more. GET /v1/authorizations lists what you have.`,
  );
}
