// The endpoints with which people see the apps that they allowed, and take that back.

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
  /** Called after each revocation, so that whoever remembers a grant forgets it. */
  changed(ids?: readonly string[]): void;
}

const idParameter = { name: "id", in: "path", description: "As the list has it, `app_…:acct_…`." } as const;
const authorizationQuery = z.object(pageQuery);
const authorizationList = listOf(authorizationShape, "AuthorizationList");

const endpoint = personEndpoints<AuthorizationRouteDeps>({ tag: "Apps", errors: [], admit: (principal) => principal });

export function authorizationRoutes(deps: AuthorizationRouteDeps): PersonRoute[] {
  return [list(deps), retrieve(deps), limit(deps), revoke(deps)];
}

const list = endpoint("GET", "/v1/authorizations", {
  operationId: "listAuthorizations",
  summary: "List the apps that you allowed",
  description: "For all of your accounts and environments; the logins of the command line tool are among them.",
  query: authorizationQuery,
  response: { description: "One page of them.", json: authorizationList },
  async answer({ deps: { oauth, clock }, principal: { person }, query: { limit, after } }) {
    const all = (await oauth.listAllowedApps(person.id, clock.nowSeconds())).map(toWire);
    // The last of that id: logins of the command line tool may be there for one account in several environments.
    const place = after === undefined ? -1 : all.findLastIndex(({ id }) => id === after);
    if (after !== undefined && place < 0) {
      throw invalidRequest("after: must be an id of this list, such as the last one shown.");
    }
    return pageOf(all.slice(place + 1), limit);
  },
});

const retrieve = endpoint("GET", "/v1/authorizations/:id", {
  operationId: "retrieveAuthorization",
  summary: "Retrieve what you allowed one app, with what it used of its quotas",
  description: "In the environment that is asked for, or else in one in which it is allowed something.",
  parameters: [idParameter],
  response: { description: "What the app is allowed.", json: authorizationDetailsShape },
  async answer({ deps: { oauth, limits, clock }, principal: { person, environment }, id: wanted }) {
    const all = (await oauth.listAllowedApps(person.id, clock.nowSeconds())).filter((one) => idOf(one) === wanted);
    const allowed = all.find((one) => one.environment === environment) ?? all[0];
    if (!allowed) throw nothingAllowed(wanted);
    return { ...toWire(allowed), quotas_used: await quotaUse(windowsOfKey({ ...allowed, kind: "grant" }), limits) };
  },
});

const limit = endpoint("PATCH", "/v1/authorizations/:id", {
  operationId: "limitAuthorization",
  summary: "Say how much an app may use for you, and which tools",
  description:
    "Quotas per window that all of the app's tokens for this account share, in each environment, within your own and those of the account, and the tools that it may use of those that you may. They stay for as long as the app is allowed something there; of what you allow it anew you choose the tools then.",
  parameters: [idParameter],
  requestBody: updateAuthorizationRequest,
  example: { quotas: [{ unit: "usd", amount: 1, per: "day" }] },
  response: { description: "What the app is allowed.", json: authorizationShape },
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
  summary: "Take back what you allowed an app",
  description: "At once: its tokens for this account are refused from then on. It may ask again.",
  parameters: [idParameter],
  response: { description: "The app may do nothing there any more.", json: deletedAuthorizationShape },
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

/** What the person may change of it. */
function boundsToWire({ quotas, tools }: Pick<AllowedApp, "quotas" | "tools">) {
  return { tools: tools && [...tools], quotas: rulesOnWire(quotas) };
}

/** Neither id has a colon. */
function idOf({ appId, accountId }: AllowedApp): string {
  return `${appId}:${accountId}`;
}

function nothingAllowed(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `You have allowed nothing under ${shown(id, 200)}, or not any more. GET /v1/authorizations lists what you have.`,
  );
}
