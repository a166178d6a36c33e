// The one route table, in the order of the reference page.
import { type AccountRouteDeps, accountRoutes } from "./account-routes.ts";
import { type AdminPeopleDeps, adminPeopleRoutes } from "./admin-people-routes.ts";
import { type AdminRouteDeps, adminRoutes } from "./admin-routes.ts";
import { type AdminSystemDeps, adminSystemRoutes } from "./admin-system-routes.ts";
import { type AppRouteDeps, appRoutes } from "./app-routes.ts";
import { type AuditRouteDeps, auditRoutes } from "./audit-routes.ts";
import { type AuthorizationRouteDeps, authorizationRoutes } from "./authorization-routes.ts";
import { type ChatRouteDeps, chatRoutes } from "./chat-routes.ts";
import { dashboardRoutes } from "./dashboard/dashboard-routes.ts";
import { type InferenceRouteDeps, inferenceRoutes } from "./inference-routes.ts";
import { type InvitationRouteDeps, invitationRoutes } from "./invitation-routes.ts";
import { type KeyRouteDeps, keyRoutes } from "./key-routes.ts";
import { type MemberRouteDeps, memberRoutes } from "./member-routes.ts";
import { type MetricsRouteDeps, metricsRoutes } from "./metrics-routes.ts";
import { modelRoutes } from "./model-routes.ts";
import { type ModelStatusDeps, modelStatusRoutes } from "./model-status-routes.ts";
import { type NodeRouteDeps, nodeRoutes } from "./node-routes.ts";
import { type OAuthRouteDeps, oauthRoutes } from "./oauth-routes.ts";
import { type AuthorizeDeps, authorizeRoutes } from "./pages/authorize-routes.ts";
import { type DeviceDeps, deviceRoutes } from "./pages/device-routes.ts";
import { type PageRouteDeps, pageRoutes } from "./pages/page-routes.ts";
import { type SsoRouteDeps, ssoRoutes } from "./pages/sso-routes.ts";
import { type PasskeyRouteDeps, passkeyRoutes } from "./passkey-routes.ts";
import { type RefusalRouteDeps, refusalRoutes } from "./refusal-routes.ts";
import { type RequestRouteDeps, requestRoutes } from "./request-routes.ts";
import type { Route } from "./route.ts";
import { type ServiceRouteDeps, serviceRoutes } from "./service-routes.ts";
import { type SessionRouteDeps, sessionRoutes } from "./session-routes.ts";
import { type TokenRouteDeps, tokenRoutes } from "./token-routes.ts";
import { type UsageRouteDeps, usageRoutes } from "./usage-routes.ts";

/** `limits` are those of requests and tokens; what a body may be comes from `requestLimits` everywhere. */
export type RouteDeps = InferenceRouteDeps &
  Omit<ChatRouteDeps, "limits" | "writer"> &
  ModelStatusDeps &
  UsageRouteDeps &
  RefusalRouteDeps &
  RequestRouteDeps &
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
  DeviceDeps & { clientThrottle: OAuthRouteDeps["throttle"] } & Omit<ServiceRouteDeps, "routes">;

export function createRoutes(deps: RouteDeps): readonly Route[] {
  const reading = { ...deps, limits: deps.requestLimits };
  const routes: Route[] = [
    ...inferenceRoutes(deps),
    ...chatRoutes({ ...reading, writer: deps.chatWriter }),
    ...modelRoutes(deps.catalog),
    ...modelStatusRoutes(deps),
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
