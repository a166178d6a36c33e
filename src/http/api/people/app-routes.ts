// The endpoints with which an account registers and manages its apps.
import { z } from "zod";
import {
  appToWire,
  createApp,
  deleteApp,
  requireApp,
  rotateAppSecret,
  updateApp,
} from "../../../accounts/manage-apps.ts";
import { GatewayError } from "../../../base/errors.ts";
import { type App, type AppStore, defaultSecretOverlapSeconds, type PublishedApp } from "../../../domain/people/app.ts";
import { ownOnly, type Principal } from "../../../domain/principal.ts";
import { requireKeyManager } from "../../../policy/manage/delegation.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import {
  appShape,
  createAppRequest,
  createdAppShape,
  deletedAppShape,
  rotatedAppShape,
  rotateSecretRequest,
  updateAppRequest,
} from "../../../wire/apps.ts";
import type { BodyLimits } from "../../content/body.ts";
import { readQuery } from "../../decode/query.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Answer, Exchange, RouteDoc, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, noStore, originOf } from "../changes.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { answerUsage, type UsageRouteDeps, usageDescription, usageDoc } from "../usage/usage-routes.ts";

export interface AppRouteDeps extends Pick<UsageRouteDeps, "reports" | "ledger" | "clock" | "retention"> {
  apps: AppStore;
  pepper: Uint8Array;
  throttle: Pick<Throttle, "require">;
  /** Read for every request: a reload may change them. */
  limits(): BodyLimits;
  /** Called after each committed change of what is there already: with an app, what it was granted ends. */
  changed(ids?: readonly string[]): void;
}

const changeErrors = [...bodyErrors, "rate_limit_exceeded"] as const;
const idParameter = [{ name: "id", in: "path", description: "Id of the app, `app_…`." }] as const;

const appQuery = z.object(pageQuery);
const appList = listOf(appShape, "AppList");

export function appRoutes(deps: AppRouteDeps): ScopedRoute[] {
  const route = (
    method: ScopedRoute["method"],
    path: string,
    doc: Omit<RouteDoc, "tag">,
    handle: (exchange: Exchange, principal: Principal, deps: AppRouteDeps) => Promise<Answer>,
  ): ScopedRoute => ({
    method,
    path,
    access: "keys:manage",
    doc: { ...doc, tag: "Apps", errors: [...(doc.errors ?? []), "permission_denied", "service_unavailable"] },
    handle(exchange, principal) {
      requireKeyManager(principal);
      return handle(exchange, principal, deps);
    },
  });
  return [
    route("POST", "/v1/apps", createDoc, create),
    route("GET", "/v1/apps", listDoc, list),
    route("GET", "/v1/apps/:id", retrieveDoc, retrieve),
    route("PATCH", "/v1/apps/:id", updateDoc, update),
    route("DELETE", "/v1/apps/:id", deleteDoc, remove),
    route("POST", "/v1/apps/:id/rotate-secret", rotateDoc, rotate),
    route("GET", "/v1/apps/:id/usage", appUsageDoc, usage),
  ];
}

const createDoc: Omit<RouteDoc, "tag"> = {
  operationId: "createApp",
  summary: "Register an app",
  description:
    "An OAuth client of the account and environment of the credential that registers it. Its `id` is its `client_id`. The answer shows the secret of a confidential app, this once.",
  requestBody: createAppRequest,
  example: { name: "Notes", homepage_url: "https://notes.example/", redirect_uris: ["https://notes.example/callback"] },
  response: { description: "The new app.", json: createdAppShape },
  errors: changeErrors,
};

async function create(exchange: Exchange, principal: Principal, deps: AppRouteDeps): Promise<Response> {
  const request = await readStrictBody(createAppRequest, exchange.req, deps.limits());
  const { pepper } = deps;
  const { app, secret, event } = createApp(principal, request, { pepper, origin: originOf(exchange, deps) });
  await deps.throttle.require("change", principal);
  await deps.apps.insertApp(app, event);
  const shown = secret === null ? {} : { client_secret: secret };
  const wire = appToWire(app, principal.account.name, event.at);
  return Response.json({ ...wire, ...shown } satisfies z.infer<typeof createdAppShape>, { headers: noStore });
}

const listDoc: Omit<RouteDoc, "tag"> = {
  operationId: "listApps",
  summary: "List the apps of this account and environment",
  description: "Newest first. A member, and a member's key, sees the member's own.",
  query: appQuery,
  response: { description: "One page of apps.", json: appList },
  errors: ["invalid_request"],
};

async function list({ req }: Exchange, principal: Principal, { apps, clock }: AppRouteDeps): Promise<Response> {
  const { limit, after } = readQuery(appQuery, req.target);
  if (after !== undefined) await requirePlace(after, principal, apps);
  const own = ownOnly(principal);
  const { account, environment } = principal;
  const filter = { accountId: account.id, environment, ...(own === null ? {} : { personId: own }) };
  const found = await apps.listApps(filter, { after, limit: limit + 1 });
  const nowSeconds = clock.nowSeconds();
  const page = pageOf(
    found.map((app) => appToWire(app, account.name, nowSeconds)),
    limit,
  );
  return Response.json(page satisfies z.infer<typeof appList>);
}

/** A cursor that names nothing would silently begin again, or in the middle. */
async function requirePlace(after: string, principal: Principal, apps: AppStore): Promise<void> {
  try {
    requireApp(principal, await apps.findApp(after), after);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "not_found") throw error;
    const message = "after: must be the id of an app of this list, such as the last one shown.";
    throw new GatewayError("invalid_request", message);
  }
}

const retrieveDoc: Omit<RouteDoc, "tag"> = {
  operationId: "retrieveApp",
  summary: "Retrieve one app",
  parameters: idParameter,
  response: { description: "The app.", json: appShape },
  errors: ["not_found"],
};

async function retrieve(exchange: Exchange, principal: Principal, deps: AppRouteDeps): Promise<Response> {
  return answer(await find(exchange, principal, deps), principal, deps);
}

const updateDoc: Omit<RouteDoc, "tag"> = {
  operationId: "updateApp",
  summary: "Change an app",
  description:
    "What is left out stays as it is; `redirect_uris` and `scopes` are replaced whole. A scope that is added has to be allowed by people anew; one that is taken away is in no token that is issued from then on.",
  parameters: idParameter,
  requestBody: updateAppRequest,
  example: { redirect_uris: ["https://notes.example/callback", "http://127.0.0.1/callback"] },
  response: { description: "The app.", json: appShape },
  errors: [...changeErrors, "not_found"],
};

async function update(exchange: Exchange, principal: Principal, deps: AppRouteDeps): Promise<Response> {
  const request = await readStrictBody(updateAppRequest, exchange.req, deps.limits());
  const app = await find(exchange, principal, deps);
  const change = updateApp(principal, app, request, originOf(exchange, deps));
  if (!change) return answer(app, principal, deps);
  await deps.throttle.require("change", principal);
  const updated = await deps.apps.updateApp(app.id, change.changes, change.event);
  deps.changed([app.id]);
  return answer(requireApp(principal, updated, app.id), principal, deps);
}

const deleteDoc: Omit<RouteDoc, "tag"> = {
  operationId: "deleteApp",
  summary: "Delete an app",
  description:
    "At once and for good, with everything that people allowed it: its tokens are refused from then on. What it used stays in the reports.",
  parameters: idParameter,
  response: { description: "It is deleted.", json: deletedAppShape },
  errors: ["not_found"],
};

async function remove(exchange: Exchange, principal: Principal, deps: AppRouteDeps): Promise<Response> {
  const { id, ...app } = await find(exchange, principal, deps);
  // Never throttled: it is what ends an app that does harm.
  const isDeleted = await deps.apps.deleteApp(id, deleteApp(principal, { id, ...app }, originOf(exchange, deps)));
  if (!isDeleted) requireApp(principal, undefined, id);
  deps.changed([id]);
  return Response.json({ object: "app", id, deleted: true } satisfies z.infer<typeof deletedAppShape>);
}

const rotateDoc: Omit<RouteDoc, "tag"> = {
  operationId: "rotateAppSecret",
  summary: "Rotate an app's secret",
  description:
    "Makes a new secret, and ends the one before after the overlap. At most two work at a time: one that an earlier rotation had left ends at once. The tokens of the app go on.",
  parameters: idParameter,
  requestBody: rotateSecretRequest,
  example: { overlap_seconds: 3_600 },
  response: { description: "The app, with its new secret.", json: rotatedAppShape },
  errors: [...changeErrors, "not_found"],
};

async function rotate(exchange: Exchange, principal: Principal, deps: AppRouteDeps): Promise<Response> {
  const { apps, pepper, limits } = deps;
  const { req } = exchange;
  const request = !req.hasBody ? {} : await readStrictBody(rotateSecretRequest, req, limits());
  const app = await find(exchange, principal, deps);
  const context = { pepper, origin: originOf(exchange, deps) };
  const overlapSeconds = request.overlap_seconds ?? defaultSecretOverlapSeconds;
  const { secret, record, oldEndAt, event } = rotateAppSecret(principal, app, overlapSeconds, context);
  await deps.throttle.require("change", principal);
  const rotated = requireApp(principal, await apps.rotateSecret(app.id, record, oldEndAt, event), app.id);
  deps.changed([app.id]);
  const wire = { ...appToWire(rotated, app.publisher, event.at), client_secret: secret };
  return Response.json(wire satisfies z.infer<typeof rotatedAppShape>, { headers: noStore });
}

const appUsageDoc: Omit<RouteDoc, "tag"> = {
  ...usageDoc,
  operationId: "getAppUsage",
  summary: "What one app was used for, over all accounts",
  description: `${usageDescription} Over all accounts whose members allowed it, against which it counts: \`group_by=key\` shows each grant, and no account is named.`,
  parameters: idParameter,
  errors: ["invalid_request", "not_found"],
};

async function usage(exchange: Exchange, principal: Principal, deps: AppRouteDeps): Promise<Answer> {
  const { id } = await find(exchange, principal, deps);
  return answerUsage(deps, exchange, principal, { accountId: null, appId: id });
}

async function find({ params }: Exchange, principal: Principal, { apps }: AppRouteDeps): Promise<PublishedApp> {
  const id = params["id"] ?? "";
  return requireApp(principal, await apps.findApp(id), id);
}

function answer(app: App, { account }: Principal, { clock }: AppRouteDeps): Response {
  return Response.json(appToWire(app, account.name, clock.nowSeconds()) satisfies z.infer<typeof appShape>);
}
