// The endpoints by which an account registers and manages its OAuth apps.
import { z } from "zod";
import {
  appToWire,
  createApp,
  deleteApp,
  requireApp,
  rotateAppSecret,
  suspendApp,
  unknownApp,
  updateApp,
} from "../../../accounts/manage-apps.ts";
import { GatewayError, invalidRequest } from "../../../base/errors.ts";
import { type App, type AppStore, defaultSecretOverlapSeconds, type PublishedApp } from "../../../domain/people/app.ts";
import { ownOnly, type Principal } from "../../../domain/principal.ts";
import { requireKeyManager } from "../../../policy/manage/delegation.ts";
import { requireResumable, suspenderOf } from "../../../policy/manage/suspension-rank.ts";
import type { Origin } from "../../../policy/records/audit.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import {
  type AppWire,
  appShape,
  createAppRequest,
  createdAppShape,
  deletedAppShape,
  rotatedAppShape,
  rotateSecretRequest,
  updateAppRequest,
} from "../../../wire/people/apps.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import { type EndpointDeps, type Named, scopedEndpoints } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { answerUsage, type UsageRouteDeps, usageDescription, usageDoc } from "../usage/usage-routes.ts";

export interface AppRouteDeps extends EndpointDeps, Pick<UsageRouteDeps, "reports" | "ledger" | "retention"> {
  apps: AppStore;
  pepper: Uint8Array;
  throttle: Pick<Throttle, "require">;
  /** Called after an existing app was changed, to clear caches. If the app was deleted, its grants end. */
  changed(ids?: readonly string[]): void;
}

const idParameter = [{ name: "id", in: "path", description: "Id of the app, `app_…`." }] as const;

const appQuery = z.object(pageQuery);
const appList = listOf(appShape, "AppList");

const endpoint = scopedEndpoints<AppRouteDeps>("keys:manage", {
  tag: "Apps",
  errors: ["permission_denied"],
  admit: requireKeyManager,
});

export function appRoutes(deps: AppRouteDeps): ScopedRoute[] {
  return [
    create(deps),
    list(deps),
    retrieve(deps),
    update(deps),
    remove(deps),
    rotate(deps),
    suspend(deps),
    resume(deps),
    usage(deps),
  ];
}

const create = endpoint("POST", "/v1/apps", {
  operationId: "createApp",
  summary: "Register an app",
  description:
    "Registers an OAuth client of the account and environment of the credential. Its `id` is its `client_id`. The secret of a confidential app is shown only in this response.",
  requestBody: createAppRequest,
  example: { name: "Notes", homepage_url: "https://notes.example/", redirect_uris: ["https://notes.example/callback"] },
  response: { description: "The new app.", json: createdAppShape },
  showsSecret: true,
  async answer({ deps, principal, body, origin }) {
    const { app, secret, event } = createApp(principal, body, { pepper: deps.pepper, origin });
    await deps.throttle.require("change", principal);
    await deps.apps.insertApp(app, event);
    const shown = secret === null ? {} : { client_secret: secret };
    return { ...appToWire(app, principal.account.name, event.at), ...shown };
  },
});

const list = endpoint("GET", "/v1/apps", {
  operationId: "listApps",
  summary: "List the apps of this account and environment",
  description: "Newest first. A member, or a member's key, sees only the member's apps.",
  query: appQuery,
  response: { description: "One page of apps.", json: appList },
  async answer({ deps: { apps, clock }, principal, query: { limit, after } }) {
    if (after !== undefined) await requireCursor(after, principal, apps);
    const own = ownOnly(principal);
    const { account, environment } = principal;
    const filter = { accountId: account.id, environment, ...(own === null ? {} : { personId: own }) };
    const found = await apps.listApps(filter, { after, limit: limit + 1 });
    const nowSeconds = clock.nowSeconds();
    const data = found.map((app) => appToWire(app, account.name, nowSeconds));
    return pageOf(data, limit);
  },
});

/** Throws for an unknown cursor. Otherwise the list would start again or skip apps, and the client would not notice. */
async function requireCursor(after: string, principal: Principal, apps: AppStore): Promise<void> {
  try {
    requireApp(principal, await apps.findApp(after), after);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "not_found") throw error;
    const message = "after: must be the id of an app of this list, such as the last one shown.";
    throw invalidRequest(message);
  }
}

const retrieve = endpoint("GET", "/v1/apps/:id", {
  operationId: "retrieveApp",
  summary: "Retrieve one app",
  parameters: idParameter,
  response: { description: "The app.", json: appShape },
  answer: async (asked) => wireOf(await find(asked), asked),
});

const update = endpoint("PATCH", "/v1/apps/:id", {
  operationId: "updateApp",
  summary: "Change an app",
  description:
    "Omitted members keep their values. `redirect_uris` and `scopes` are replaced as a whole. Users must consent to an added scope again. A removed scope is not in any token issued afterwards.",
  parameters: idParameter,
  requestBody: updateAppRequest,
  example: { redirect_uris: ["https://notes.example/callback", "http://127.0.0.1/callback"] },
  response: { description: "The app.", json: appShape },
  async answer({ deps, principal, id, body, origin }) {
    const app = await find({ deps, principal, id });
    const change = updateApp(principal, app, body, origin);
    if (!change) return wireOf(app, { deps, principal });
    await deps.throttle.require("change", principal);
    const updated = await deps.apps.updateApp(app.id, change.changes, change.event);
    deps.changed([app.id]);
    return wireOf(requireApp(principal, updated, app.id), { deps, principal });
  },
});

const remove = endpoint("DELETE", "/v1/apps/:id", {
  operationId: "deleteApp",
  summary: "Delete an app",
  description:
    "Deletes the app and all grants of its users, immediately and permanently. Its tokens are refused. Its usage stays in the reports.",
  parameters: idParameter,
  response: { description: "The app is deleted.", json: deletedAppShape },
  async answer({ deps, principal, id, origin }) {
    const app = await find({ deps, principal, id });
    // Deletion has no rate limit, because it stops a harmful app.
    const isDeleted = await deps.apps.deleteApp(id, deleteApp(principal, app, origin));
    if (!isDeleted) requireApp(principal, undefined, id);
    deps.changed([id]);
    return { object: "app", id, deleted: true };
  },
});

const rotate = endpoint("POST", "/v1/apps/:id/rotate-secret", {
  operationId: "rotateAppSecret",
  summary: "Rotate an app's secret",
  description:
    "Creates a new secret, and ends the previous one after the overlap. At most two secrets work at a time: an older one ends immediately. Tokens of the app stay valid.",
  parameters: idParameter,
  requestBody: rotateSecretRequest,
  bodyIsOptional: true,
  example: { overlap_seconds: 3_600 },
  response: { description: "The app, with its new secret.", json: rotatedAppShape },
  showsSecret: true,
  async answer({ deps, principal, id, body, origin }) {
    const app = await find({ deps, principal, id });
    const context = { pepper: deps.pepper, origin };
    const overlapSeconds = body.overlap_seconds ?? defaultSecretOverlapSeconds;
    const { secret, record, oldEndAt, event } = rotateAppSecret(principal, app, overlapSeconds, context);
    await deps.throttle.require("change", principal);
    const rotated = requireApp(principal, await deps.apps.rotateSecret(app.id, record, oldEndAt, event), app.id);
    deps.changed([app.id]);
    return { ...appToWire(rotated, app.publisher, event.at), client_secret: secret };
  },
});

const suspend = endpoint("POST", "/v1/apps/:id/suspend", {
  operationId: "suspendApp",
  summary: "Suspend an app",
  description:
    "Refuses the app's tokens for all people within a second, on every replica, and stops their running requests, until the app is resumed. Nobody can authorize it meanwhile.",
  parameters: idParameter,
  response: { description: "The app.", json: appShape },
  answer: (asked) => setSuspended(asked, true),
});

const resume = endpoint("POST", "/v1/apps/:id/resume", {
  operationId: "resumeApp",
  summary: "Resume a suspended app",
  description:
    "Only an operator can resume an app that an operator suspended, and no member one that an owner, an admin or a key of the account suspended.",
  parameters: idParameter,
  response: { description: "The app.", json: appShape },
  answer: (asked) => setSuspended(asked, false),
});

async function setSuspended(
  { origin, ...asked }: Named<AppRouteDeps> & { origin: Origin },
  isSuspended: boolean,
): Promise<AppWire> {
  const { deps, principal } = asked;
  const app = await find(asked);
  const change = { by: suspenderOf(principal), isSuspended };
  const event = suspendApp(principal, app, change, origin);
  if (!event) return wireOf(app, asked);
  await deps.throttle.require("change", principal);
  const suspendedBy = await deps.apps.setSuspended(app.id, change, event);
  if (suspendedBy === undefined) throw unknownApp(app.id);
  requireResumable(suspendedBy, change, "app");
  deps.changed([app.id]);
  return wireOf({ ...app, suspendedBy }, asked);
}

/** This route is declared without the endpoint helper, because its answer may be a stream. */
function usage(deps: AppRouteDeps): ScopedRoute {
  return {
    method: "GET",
    path: "/v1/apps/:id/usage",
    access: "keys:manage",
    doc: {
      ...usageDoc,
      tag: "Apps",
      operationId: "getAppUsage",
      summary: "Retrieve the usage of one app, over all accounts",
      description: `${usageDescription} Covers all accounts whose members allowed the app. The usage counts against those accounts. \`group_by=key\` shows each grant, without the name of the account.`,
      parameters: idParameter,
      errors: ["not_found", "permission_denied"],
    },
    async handle(exchange, principal) {
      requireKeyManager(principal);
      const { id } = await find({ deps, principal, id: exchange.params["id"] ?? "" });
      return answerUsage(deps, exchange, principal, { publishedAppId: id });
    },
  };
}

async function find({ deps, principal, id }: Named<AppRouteDeps>): Promise<PublishedApp> {
  return requireApp(principal, await deps.apps.findApp(id), id);
}

function wireOf(app: App, { deps, principal }: Omit<Named<AppRouteDeps>, "id">): AppWire {
  return appToWire(app, principal.account.name, deps.clock.nowSeconds());
}
