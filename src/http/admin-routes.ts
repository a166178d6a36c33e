// The operators' endpoints, all under the scope `admin:manage`.
import { type AdminAccountDeps, adminAccountRoutes } from "./admin-account-routes.ts";
import { type AdminAuditDeps, adminAuditRoutes } from "./admin-audit-routes.ts";
import { type AdminKeyDeps, adminKeyRoutes } from "./admin-key-routes.ts";
import { type AdminNodeDeps, adminNodeRoutes } from "./admin-node-routes.ts";
import { type AdminSigningKeyDeps, adminSigningKeyRoutes } from "./admin-signing-key-routes.ts";
import { type AdminTierDeps, adminTierRoutes } from "./admin-tier-routes.ts";
import { type AdminUpstreamDeps, adminUpstreamRoutes } from "./admin-upstream-routes.ts";
import type { ScopedRoute } from "./route.ts";

export type AdminRouteDeps = AdminAccountDeps &
  AdminKeyDeps &
  AdminTierDeps &
  AdminAuditDeps &
  AdminSigningKeyDeps &
  AdminUpstreamDeps &
  AdminNodeDeps;

export function adminRoutes(deps: AdminRouteDeps): ScopedRoute[] {
  return [
    ...adminAccountRoutes(deps),
    ...adminKeyRoutes(deps),
    ...adminTierRoutes(deps),
    ...adminUpstreamRoutes(deps),
    ...adminNodeRoutes(deps),
    ...adminAuditRoutes(deps),
    ...adminSigningKeyRoutes(deps),
  ];
}
