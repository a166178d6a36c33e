// Whether this process takes requests, and what it does without: asked by monitors and load balancers, so never slow.
import type { CheckState, Readiness } from "./http/service-routes.ts";
import type { Catalog } from "./inference/catalog.ts";
import type { Authenticator } from "./policy/authenticate.ts";
import type { Replicas } from "./policy/replicas.ts";

export interface ReadinessOptions {
  authenticator: Pick<Authenticator, "reach" | "standing">;
  catalog: Pick<Catalog, "complete">;
  /** Undefined where the database is not shared. */
  replicas: Pick<Replicas, "isUncoordinated"> | undefined;
  /** Whether limits are counted in Redis now; undefined where there is none. */
  redis: (() => "ok" | "failed") | undefined;
  isDraining(): boolean;
}

export async function readinessOf(options: ReadinessOptions): Promise<Readiness> {
  await options.authenticator.reach();
  return readinessNow(options);
}

/** As far as it is known without asking the database: it is looked at all the time. */
export function readinessNow(options: ReadinessOptions): Readiness {
  const { authenticator, catalog, replicas, redis, isDraining } = options;
  const database = authenticator.standing;
  const counters = redis?.();
  const checks: Record<string, CheckState> = {
    database: database === "ok" ? "ok" : "failed",
    ...(counters === undefined ? {} : { redis: counters }),
    ...(replicas === undefined ? {} : { replicas: replicas.isUncoordinated ? "degraded" : "ok" }),
    models: catalog.complete ? "ok" : "starting",
    server: isDraining() ? "draining" : "ok",
  };
  // Without its database it serves whom it knows, for some minutes: others that are better off may not be there.
  const isReady = !isDraining() && database !== "gone" && catalog.complete;
  const isWhole = Object.values(checks).every((state) => state === "ok");
  return { status: isReady ? (isWhole ? "ready" : "degraded") : "not_ready", checks };
}
