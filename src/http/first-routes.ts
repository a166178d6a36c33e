// The routes that are loaded at the start: for model requests and for monitoring. All others are loaded at the first
// request for one of them. This saves memory if nobody manages the gateway.
import { inferenceRoutes } from "./api/inference-routes.ts";
import { messageRoutes } from "./api/message-routes.ts";
import { metricsRoutes } from "./api/metrics-routes.ts";
import { modelRoutes } from "./api/model-routes.ts";
import { modelStatusRoutes } from "./api/model-status-routes.ts";
import { responseRoutes } from "./api/responses/response-routes.ts";
import { serviceRoutes } from "./api/service-routes.ts";
import type { Route } from "./exchange/route.ts";
import type { MadeRoutes, RouteDeps } from "./routes.ts";

const makers = [
  inferenceRoutes,
  responseRoutes,
  messageRoutes,
  modelRoutes,
  modelStatusRoutes,
  serviceRoutes,
  metricsRoutes,
];

export interface FirstRoutes {
  routes: readonly Route[];
  /** Loads and returns the remaining routes. */
  others(): Promise<readonly Route[]>;
}

export function createFirstRoutes(deps: RouteDeps): FirstRoutes {
  let loaded: Promise<readonly Route[]> | undefined;
  const load = async () => {
    try {
      return (await import("./routes.ts")).createRoutes(deps, made);
    } catch (error) {
      loaded = undefined;
      throw error;
    }
  };
  const whole = () => {
    loaded ??= load();
    return loaded;
  };
  const made: MadeRoutes = new Map(makers.map((make): [unknown, readonly Route[]] => [make, make(deps, whole)]));
  const routes = [...made.values()].flat();
  return {
    routes,
    async others() {
      const first = new Set(routes);
      return (await whole()).filter((route) => !first.has(route));
    },
  };
}
