// What makes the operators' routes, all under the scope `admin:manage`.

import { adminAccountRoutes } from "./account-routes.ts";
import { adminAuditRoutes } from "./audit-routes.ts";
import { adminCacheRoutes } from "./cache-routes.ts";
import { adminComparisonRoutes } from "./comparison-routes.ts";
import { adminKeyRoutes } from "./key-routes.ts";
import { adminModelProcessRoutes } from "./model-process-routes.ts";
import { adminModelRoutes } from "./model-routes.ts";
import { adminNodeRoutes } from "./node-routes.ts";
import { adminPulledModelRoutes } from "./pulled-model-routes.ts";
import { adminSigningKeyRoutes } from "./signing-key-routes.ts";
import { adminTierRoutes } from "./tier-routes.ts";
import { adminToolRoutes } from "./tool-routes.ts";
import { adminUpstreamRoutes } from "./upstream-routes.ts";
import { adminWebhookRoutes } from "./webhook-routes.ts";

export const adminRoutes = [
  adminAccountRoutes,
  adminKeyRoutes,
  adminTierRoutes,
  adminUpstreamRoutes,
  adminModelRoutes,
  adminToolRoutes,
  adminComparisonRoutes,
  adminPulledModelRoutes,
  adminCacheRoutes,
  adminModelProcessRoutes,
  adminNodeRoutes,
  adminWebhookRoutes,
  adminAuditRoutes,
  adminSigningKeyRoutes,
];
