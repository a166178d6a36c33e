// The one route table, in the order of the reference page.
import { type InferenceRouteDeps, inferenceRoutes } from "./inference-routes.ts";
import { modelRoutes } from "./model-routes.ts";
import type { Route } from "./route.ts";
import { type ServiceRouteDeps, serviceRoutes } from "./service-routes.ts";

export type RouteDeps = InferenceRouteDeps & Omit<ServiceRouteDeps, "routes">;

export function createRoutes(deps: RouteDeps): readonly Route[] {
  const routes: Route[] = [
    ...inferenceRoutes(deps),
    ...modelRoutes(deps.catalog),
    ...serviceRoutes({ ...deps, routes: () => routes }),
  ];
  return routes;
}
