// Lists all routes of the API, in the order of the reference page.
import { guardrailRoutes } from "../features/guardrails/routes.ts";
import { accountRoutes } from "./api/account-routes.ts";
import { adminAccountRoutes } from "./api/admin/account-routes.ts";
import { allAccountsRoutes } from "./api/admin/all-accounts-routes.ts";
import { adminAppRoutes } from "./api/admin/app-routes.ts";
import { adminAuditRoutes } from "./api/admin/audit-routes.ts";
import { adminCacheRoutes } from "./api/admin/cache-routes.ts";
import { adminComparisonRoutes } from "./api/admin/comparison-routes.ts";
import { declaredRoutes } from "./api/admin/declared/declared-routes.ts";
import { adminKeyRoutes } from "./api/admin/key-routes.ts";
import { adminLimitRequestRoutes } from "./api/admin/limit-request-routes.ts";
import { adminModelProcessRoutes } from "./api/admin/model-process-routes.ts";
import { adminModelRoutes } from "./api/admin/model-routes.ts";
import { adminNodeRoutes } from "./api/admin/node-routes.ts";
import { adminOrganizationRoutes } from "./api/admin/organization-routes.ts";
import { adminPeopleRoutes } from "./api/admin/people-routes.ts";
import { adminPulledModelRoutes } from "./api/admin/pulled-model-routes.ts";
import { adminSigningKeyRoutes } from "./api/admin/signing-key-routes.ts";
import { adminSystemRoutes } from "./api/admin/system-routes.ts";
import { adminTierRoutes } from "./api/admin/tier-routes.ts";
import { adminToolRoutes } from "./api/admin/tool-routes.ts";
import { adminUpstreamRoutes } from "./api/admin/upstream-routes.ts";
import { adminWebhookRoutes } from "./api/admin/webhook-routes.ts";
import { batchRoutes } from "./api/batches/batch-routes.ts";
import { messageBatchRoutes } from "./api/batches/message-batch-routes.ts";
import { chatRoutes } from "./api/chat-routes.ts";
import { fileRoutes } from "./api/files/file-routes.ts";
import { uploadRoutes } from "./api/files/upload-routes.ts";
import { inferenceRoutes } from "./api/inference-routes.ts";
import { keyRotationRoutes } from "./api/key-rotation-routes.ts";
import { keyRoutes } from "./api/key-routes.ts";
import { mcpRoutes } from "./api/mcp/mcp-routes.ts";
import { messageRoutes } from "./api/message-routes.ts";
import { metricsRoutes } from "./api/metrics-routes.ts";
import { modelRoutes } from "./api/model-routes.ts";
import { modelStatusRoutes } from "./api/model-status-routes.ts";
import { priceRoutes } from "./api/models/price-routes.ts";
import { nodeRoutes } from "./api/node-routes.ts";
import { oauthRoutes } from "./api/oauth-routes.ts";
import { appRoutes } from "./api/people/app-routes.ts";
import { auditRoutes } from "./api/people/audit-routes.ts";
import { authorizationRoutes } from "./api/people/authorization-routes.ts";
import { endUserRoutes } from "./api/people/end-user-routes.ts";
import { invitationRoutes } from "./api/people/invitation-routes.ts";
import { limitRequestRoutes } from "./api/people/limit-request-routes.ts";
import { memberRoutes } from "./api/people/member-routes.ts";
import { notificationRoutes } from "./api/people/notification-routes.ts";
import { passkeyRoutes } from "./api/people/passkey-routes.ts";
import { sessionRoutes } from "./api/people/session-routes.ts";
import { realtimeRoutes } from "./api/realtime/realtime-routes.ts";
import { conversationRoutes } from "./api/responses/conversation-routes.ts";
import { responseRoutes } from "./api/responses/response-routes.ts";
import { storedResponseRoutes } from "./api/responses/stored-response-routes.ts";
import { serviceRoutes } from "./api/service-routes.ts";
import { tokenRoutes } from "./api/token-routes.ts";
import { toolCallbackRoutes } from "./api/tools/connection-callback.ts";
import { toolConnectionRoutes } from "./api/tools/connection-routes.ts";
import { overviewRoutes } from "./api/usage/overview-routes.ts";
import { refusalRoutes } from "./api/usage/refusal-routes.ts";
import { requestRoutes } from "./api/usage/request-routes.ts";
import { statementRoutes } from "./api/usage/statement-routes.ts";
import { usageRoutes } from "./api/usage/usage-routes.ts";
import { webhookRoutes } from "./api/webhooks/webhook-routes.ts";
import { dashboardRoutes } from "./dashboard/dashboard-routes.ts";
import type { Route } from "./exchange/route.ts";
import { guideRoutes } from "./guides/guide-routes.ts";
import { authorizeRoutes } from "./pages/authorize-routes.ts";
import { deviceRoutes } from "./pages/device-routes.ts";
import { pageRoutes } from "./pages/page-routes.ts";
import { ssoRoutes } from "./pages/sso-routes.ts";

/** The functions that create routes, in the order of the reference page. */
const makers = [
  inferenceRoutes,
  responseRoutes,
  realtimeRoutes,
  messageRoutes,
  chatRoutes,
  storedResponseRoutes,
  conversationRoutes,
  fileRoutes,
  uploadRoutes,
  batchRoutes,
  messageBatchRoutes,
  modelRoutes,
  modelStatusRoutes,
  priceRoutes,
  mcpRoutes,
  overviewRoutes,
  usageRoutes,
  statementRoutes,
  refusalRoutes,
  requestRoutes,
  accountRoutes,
  endUserRoutes,
  keyRoutes,
  keyRotationRoutes,
  webhookRoutes,
  tokenRoutes,
  oauthRoutes,
  appRoutes,
  authorizationRoutes,
  sessionRoutes,
  notificationRoutes,
  passkeyRoutes,
  memberRoutes,
  limitRequestRoutes,
  invitationRoutes,
  toolConnectionRoutes,
  auditRoutes,
  adminAccountRoutes,
  adminOrganizationRoutes,
  allAccountsRoutes,
  adminKeyRoutes,
  adminTierRoutes,
  adminUpstreamRoutes,
  adminModelRoutes,
  guardrailRoutes,
  adminToolRoutes,
  adminComparisonRoutes,
  adminPulledModelRoutes,
  adminCacheRoutes,
  adminModelProcessRoutes,
  adminNodeRoutes,
  adminWebhookRoutes,
  adminAuditRoutes,
  adminSigningKeyRoutes,
  adminAppRoutes,
  adminPeopleRoutes,
  adminLimitRequestRoutes,
  adminSystemRoutes,
  declaredRoutes,
  nodeRoutes,
  serviceRoutes,
  metricsRoutes,
  dashboardRoutes,
  guideRoutes,
  pageRoutes,
  ssoRoutes,
  toolCallbackRoutes,
  authorizeRoutes,
  deviceRoutes,
];

type Maker = (typeof makers)[number];

/** The combined dependencies of the functions above. */
export type RouteDeps = Maker extends (deps: infer Deps, all: () => Promise<readonly Route[]>) => unknown
  ? Deps
  : never;

/** The created routes by the function that created them, so that no function is called twice. */
export type MadeRoutes = ReadonlyMap<unknown, readonly Route[]>;

/** Returns all routes. Routes in `made` are not created again. */
export function createRoutes(deps: RouteDeps, made: MadeRoutes = new Map()): readonly Route[] {
  const routes: Route[] = makers.flatMap(
    (make: Maker): readonly Route[] => made.get(make) ?? make(deps, async () => routes),
  );
  return routes;
}
