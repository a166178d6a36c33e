// The operators' endpoints, all under the scope `admin:manage`.

import type { ScopedRoute } from "../../exchange/route.ts";
import { type AdminAccountDeps, adminAccountRoutes } from "./account-routes.ts";
import { type AdminAuditDeps, adminAuditRoutes } from "./audit-routes.ts";
import { type AdminKeyDeps, adminKeyRoutes } from "./key-routes.ts";
import { type AdminModelDeps, adminModelRoutes } from "./model-routes.ts";
import { type AdminNodeDeps, adminNodeRoutes } from "./node-routes.ts";
import { type AdminPulledModelDeps, adminPulledModelRoutes } from "./pulled-model-routes.ts";
import { type AdminSigningKeyDeps, adminSigningKeyRoutes } from "./signing-key-routes.ts";
import { type AdminTierDeps, adminTierRoutes } from "./tier-routes.ts";
import { type AdminUpstreamDeps, adminUpstreamRoutes } from "./upstream-routes.ts";

export type AdminRouteDeps = AdminAccountDeps &
  AdminKeyDeps &
  AdminTierDeps &
  AdminAuditDeps &
  AdminSigningKeyDeps &
  AdminUpstreamDeps &
  AdminModelDeps &
  AdminPulledModelDeps &
  AdminNodeDeps;

export function adminRoutes(deps: AdminRouteDeps): ScopedRoute[] {
  return [
    ...adminAccountRoutes(deps),
    ...adminKeyRoutes(deps),
    ...adminTierRoutes(deps),
    ...adminUpstreamRoutes(deps),
    ...adminModelRoutes(deps),
    ...adminPulledModelRoutes(deps),
    ...adminNodeRoutes(deps),
    ...adminAuditRoutes(deps),
    ...adminSigningKeyRoutes(deps),
  ];
}
