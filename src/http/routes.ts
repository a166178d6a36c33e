// The one route table, in the order of the reference page.

import type { Catalog } from "../inference/models/catalog.ts";
import { type AccountRouteDeps, accountRoutes } from "./api/account-routes.ts";
import { type AdminRouteDeps, adminRoutes } from "./api/admin/admin-routes.ts";
import { type AdminPeopleDeps, adminPeopleRoutes } from "./api/admin/people-routes.ts";
import { type AdminSystemDeps, adminSystemRoutes } from "./api/admin/system-routes.ts";
import { type ChatRouteDeps, chatRoutes } from "./api/chat-routes.ts";
import { type InferenceRouteDeps, inferenceRoutes } from "./api/inference-routes.ts";
import { type KeyRouteDeps, keyRoutes } from "./api/key-routes.ts";
import { type MetricsRouteDeps, metricsRoutes } from "./api/metrics-routes.ts";
import { modelRoutes } from "./api/model-routes.ts";
import { type ModelStatusDeps, modelStatusRoutes } from "./api/model-status-routes.ts";
import { type NodeRouteDeps, nodeRoutes } from "./api/node-routes.ts";
import { type OAuthRouteDeps, oauthRoutes } from "./api/oauth-routes.ts";
import { type AppRouteDeps, appRoutes } from "./api/people/app-routes.ts";
import { type AuditRouteDeps, auditRoutes } from "./api/people/audit-routes.ts";
import { type AuthorizationRouteDeps, authorizationRoutes } from "./api/people/authorization-routes.ts";
import { type InvitationRouteDeps, invitationRoutes } from "./api/people/invitation-routes.ts";
import { type MemberRouteDeps, memberRoutes } from "./api/people/member-routes.ts";
import { type PasskeyRouteDeps, passkeyRoutes } from "./api/people/passkey-routes.ts";
import { type SessionRouteDeps, sessionRoutes } from "./api/people/session-routes.ts";
import { type ServiceRouteDeps, serviceRoutes } from "./api/service-routes.ts";
import { type TokenRouteDeps, tokenRoutes } from "./api/token-routes.ts";
import { type OverviewRouteDeps, overviewRoutes } from "./api/usage/overview-routes.ts";
import { type RefusalRouteDeps, refusalRoutes } from "./api/usage/refusal-routes.ts";
import { type RequestRouteDeps, requestRoutes } from "./api/usage/request-routes.ts";
import { type UsageRouteDeps, usageRoutes } from "./api/usage/usage-routes.ts";
import { dashboardRoutes } from "./dashboard/dashboard-routes.ts";
import type { Route } from "./exchange/route.ts";
import { type AuthorizeDeps, authorizeRoutes } from "./pages/authorize-routes.ts";
import { type DeviceDeps, deviceRoutes } from "./pages/device-routes.ts";
import { type PageRouteDeps, pageRoutes } from "./pages/page-routes.ts";
import { type SsoRouteDeps, ssoRoutes } from "./pages/sso-routes.ts";

/** `limits` are those of requests and tokens; what a body may be comes from `requestLimits` everywhere. */
export type RouteDeps = InferenceRouteDeps &
  Omit<ChatRouteDeps, "limits" | "writer"> &
  ModelStatusDeps &
  UsageRouteDeps &
  RefusalRouteDeps &
  RequestRouteDeps &
  OverviewRouteDeps &
  AccountRouteDeps &
  Omit<KeyRouteDeps, "limits"> &
  TokenRouteDeps &
  Omit<AppRouteDeps, "limits"> &
  AuthorizationRouteDeps &
  SessionRouteDeps &
  MemberRouteDeps &
  InvitationRouteDeps &
  AuditRouteDeps &
  PasskeyRouteDeps &
  Omit<OAuthRouteDeps, "throttle"> &
  AdminRouteDeps &
  AdminPeopleDeps &
  AdminSystemDeps &
  NodeRouteDeps &
  MetricsRouteDeps &
  PageRouteDeps &
  SsoRouteDeps &
  AuthorizeDeps &
  DeviceDeps & { catalog: Catalog; clientThrottle: OAuthRouteDeps["throttle"] } & Omit<ServiceRouteDeps, "routes">;

export function createRoutes(deps: RouteDeps): readonly Route[] {
  const reading = { ...deps, limits: deps.requestLimits };
  const routes: Route[] = [
    ...inferenceRoutes(deps),
    ...chatRoutes({ ...reading, writer: deps.chatWriter }),
    ...modelRoutes(deps.catalog),
    ...modelStatusRoutes(deps),
    ...overviewRoutes(deps),
    ...usageRoutes(deps),
    ...refusalRoutes(deps),
    ...requestRoutes(deps),
    ...accountRoutes(deps),
    ...keyRoutes(reading),
    ...tokenRoutes(reading),
    ...oauthRoutes({ ...deps, throttle: deps.clientThrottle }),
    ...appRoutes(reading),
    ...authorizationRoutes(deps),
    ...sessionRoutes(deps),
    ...passkeyRoutes(deps),
    ...memberRoutes(deps),
    ...invitationRoutes(deps),
    ...auditRoutes(deps),
    ...adminRoutes(deps),
    ...adminPeopleRoutes(deps),
    ...adminSystemRoutes(deps),
    ...nodeRoutes(deps),
    ...serviceRoutes({ ...deps, routes: () => routes }),
    ...metricsRoutes(deps),
    ...dashboardRoutes(deps),
    ...pageRoutes(deps),
    ...ssoRoutes(deps),
    ...authorizeRoutes(deps),
    ...deviceRoutes(deps),
  ];
  return routes;
}
