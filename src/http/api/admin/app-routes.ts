// The operators' endpoints for the OAuth apps of any account, and for clients that no account registered.

import { appToWire, suspendApp } from "../../../accounts/manage-apps.ts";
import { GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { AppStore } from "../../../domain/people/app.ts";
import type { Origin } from "../../../policy/records/audit.ts";
import { type AppWire, appShape } from "../../../wire/people/apps.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps, Named } from "../endpoint.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminAppDeps extends EndpointDeps {
  apps: Pick<AppStore, "findApp" | "setSuspended">;
  /** Called after each committed change, to clear caches of the app's grants. */
  changed(ids?: readonly string[]): void;
}

const idParameter = [{ name: "id", in: "path", description: "Id of the app, `app_…`." }] as const;

const endpoint = adminEndpoints<AdminAppDeps>();

export function adminAppRoutes(deps: AdminAppDeps): ScopedRoute[] {
  return [suspend(deps), resume(deps)];
}

const suspend = endpoint("POST", "/v1/admin/apps/:id/suspend", {
  operationId: "suspendAnyApp",
  summary: "Suspend an app of any account, or a client that registered itself",
  description:
    "Refuses the app's tokens for all people within a second, on every replica, and stops their running requests, until an operator resumes the app. Nobody can authorize it meanwhile.",
  parameters: idParameter,
  response: { description: "The app.", json: appShape },
  answer: (asked) => setSuspended(asked, true),
});

const resume = endpoint("POST", "/v1/admin/apps/:id/resume", {
  operationId: "resumeAnyApp",
  summary: "Resume a suspended app",
  description: "Its tokens and refresh tokens work again, unless they have ended meanwhile.",
  parameters: idParameter,
  response: { description: "The app.", json: appShape },
  answer: (asked) => setSuspended(asked, false),
});

async function setSuspended(
  { deps, principal, id, origin }: Named<AdminAppDeps> & { origin: Origin },
  isSuspended: boolean,
): Promise<AppWire> {
  const app = await deps.apps.findApp(id);
  if (!app) throw new GatewayError("not_found", `There is no app ${shown(id)}.`);
  const change = { by: "operator", isSuspended } as const;
  const event = suspendApp(principal, app, change, origin);
  if (event) {
    await deps.apps.setSuspended(app.id, change, event);
    deps.changed([app.id]);
  }
  const suspendedBy = isSuspended ? "operator" : null;
  return appToWire({ ...app, suspendedBy }, app.publisher, deps.clock.nowSeconds());
}
