// The endpoints with which people see the apps that they allowed, and take that back.
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { AllowedApp, OAuthStore } from "../../../domain/people/oauth.ts";
import { auditEvent } from "../../../policy/records/audit.ts";
import { type AuthorizationWire, authorizationShape, deletedAuthorizationShape } from "../../../wire/apps.ts";
import { readQuery } from "../../decode/query.ts";
import type { Exchange, PersonPrincipal, PersonRoute } from "../../exchange/route.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";

export interface AuthorizationRouteDeps {
  oauth: Pick<OAuthStore, "listAllowedApps" | "revokeAllowedApp">;
  clock: Clock;
  /** Called after each revocation, so that whoever remembers a grant forgets it. */
  changed(ids?: readonly string[]): void;
}

const authorizationQuery = z.object(pageQuery);
const authorizationList = listOf(authorizationShape, "AuthorizationList");

export function authorizationRoutes(deps: AuthorizationRouteDeps): PersonRoute[] {
  return [
    {
      method: "GET",
      path: "/v1/authorizations",
      access: "person",
      doc: {
        operationId: "listAuthorizations",
        tag: "Apps",
        summary: "List the apps that you allowed",
        description: "For all of your accounts and environments; the logins of the command line tool are among them.",
        query: authorizationQuery,
        response: { description: "One page of them.", json: authorizationList },
        errors: ["invalid_request", "service_unavailable"],
      },
      handle: (exchange, principal) => list(exchange, principal, deps),
    },
    {
      method: "DELETE",
      path: "/v1/authorizations/:id",
      access: "person",
      doc: {
        operationId: "revokeAuthorization",
        tag: "Apps",
        summary: "Take back what you allowed an app",
        description: "At once: its tokens for this account are refused from then on. It may ask again.",
        parameters: [{ name: "id", in: "path", description: "As the list has it, `app_…:acct_…`." }],
        response: { description: "The app may do nothing there any more.", json: deletedAuthorizationShape },
        errors: ["not_found", "service_unavailable"],
      },
      handle: (exchange, principal) => revoke(exchange, principal, deps),
    },
  ];
}

async function list(
  { req }: Exchange,
  { person }: PersonPrincipal,
  { oauth, clock }: AuthorizationRouteDeps,
): Promise<Response> {
  const { limit, after } = readQuery(authorizationQuery, req.target);
  const all = (await oauth.listAllowedApps(person.id, clock.nowSeconds())).map(toWire);
  // The last of that id: logins of the command line tool may be there for one account in several environments.
  const place = after === undefined ? -1 : all.findLastIndex(({ id }) => id === after);
  if (after !== undefined && place < 0) {
    throw new GatewayError("invalid_request", "after: must be an id of this list, such as the last one shown.");
  }
  const page = pageOf(all.slice(place + 1), limit);
  return Response.json(page satisfies z.infer<typeof authorizationList>);
}

async function revoke(
  { params, clientAddress, requestId }: Exchange,
  principal: PersonPrincipal,
  { oauth, clock, changed }: AuthorizationRouteDeps,
): Promise<Response> {
  const { person } = principal;
  const nowSeconds = clock.nowSeconds();
  const wanted = params["id"] ?? "";
  const allowed = (await oauth.listAllowedApps(person.id, nowSeconds)).find((one) => idOf(one) === wanted);
  if (!allowed) throw nothingAllowed(wanted);
  const { appId, accountId, environment, scopes } = allowed;
  const origin = { nowSeconds, clientAddress, requestId };
  const detail = { environment, scopes };
  const event = auditEvent("grant.revoked", principal, origin, { accountId, targetId: appId, detail });
  const ended = await oauth.revokeAllowedApp(person.id, appId, accountId, event);
  if (ended === 0) throw nothingAllowed(wanted);
  changed([person.id]);
  return Response.json({ object: "authorization", id: wanted, deleted: true } satisfies z.infer<
    typeof deletedAuthorizationShape
  >);
}

function toWire(allowed: AllowedApp): AuthorizationWire {
  const { appId, appName, publisher, homepageUrl, accountId, accountName } = allowed;
  return {
    object: "authorization",
    id: idOf(allowed),
    app: { id: appId, name: appName, publisher, homepage_url: homepageUrl },
    account: { id: accountId, name: accountName },
    environment: allowed.environment,
    scopes: [...allowed.scopes],
    allowed_at: allowed.allowedAt,
    last_used_at: allowed.lastUsedAt,
  };
}

/** Neither id has a colon. */
function idOf({ appId, accountId }: AllowedApp): string {
  return `${appId}:${accountId}`;
}

function nothingAllowed(id: string): GatewayError {
  const shown = id.length > 200 ? `${id.slice(0, 200)}…` : id;
  return new GatewayError(
    "not_found",
    `You have allowed nothing under ${shown}, or not any more. GET /v1/authorizations lists what you have.`,
  );
}
