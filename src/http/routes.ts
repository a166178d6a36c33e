// The one route table, in the order of the reference page.
import { type AccountRouteDeps, accountRoutes } from "./account-routes.ts";
import { type AdminRouteDeps, adminRoutes } from "./admin-routes.ts";
import { type ChatRouteDeps, chatRoutes } from "./chat-routes.ts";
import { type InferenceRouteDeps, inferenceRoutes } from "./inference-routes.ts";
import { type KeyRouteDeps, keyRoutes } from "./key-routes.ts";
import { modelRoutes } from "./model-routes.ts";
import type { Route } from "./route.ts";
import { type ServiceRouteDeps, serviceRoutes } from "./service-routes.ts";
import { type TokenRouteDeps, tokenRoutes } from "./token-routes.ts";
import { type UsageRouteDeps, usageRoutes } from "./usage-routes.ts";

/** `limits` are those of requests and tokens; what a body may be comes from `requestLimits` everywhere. */
export type RouteDeps = InferenceRouteDeps &
  Omit<ChatRouteDeps, "limits" | "writer"> &
  UsageRouteDeps &
  AccountRouteDeps &
  Omit<KeyRouteDeps, "limits"> &
  TokenRouteDeps &
  AdminRouteDeps &
  Omit<ServiceRouteDeps, "routes">;

export function createRoutes(deps: RouteDeps): readonly Route[] {
  const reading = { ...deps, limits: deps.requestLimits };
  const routes: Route[] = [
    ...inferenceRoutes(deps),
    ...chatRoutes({ ...reading, writer: deps.chatWriter }),
    ...modelRoutes(deps.catalog),
    ...usageRoutes(deps),
    ...accountRoutes(deps),
    ...keyRoutes(reading),
    ...tokenRoutes(reading),
    ...adminRoutes(deps),
    ...serviceRoutes({ ...deps, routes: () => routes }),
  ];
  return routes;
}
