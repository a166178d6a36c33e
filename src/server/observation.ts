// Sets up readiness, metrics, traces, and the figures for operators.

import { bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config, SecretState } from "../config/config.ts";
import type { ToolObserver } from "../domain/tools/tool-use.ts";
import type { Observer } from "../domain/usage/observer.ts";
import type { Tracer } from "../domain/usage/trace.ts";
import type { MetricsRouteDeps } from "../http/api/metrics-routes.ts";
import type { ServiceRouteDeps } from "../http/api/service-routes.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import { type Database, dialectOf } from "../storage/sql/database.ts";
import { fileOf } from "../storage/sql/database-file.ts";
import { isSynced, requireSync } from "../storage/sql/durable-commits.ts";
import type { ExportBounds } from "../tracing/export.ts";
import type { Tracing } from "../tracing/open-tracing.ts";
import { type Exports, openExports } from "./exports/open-exports.ts";
import type { Governance } from "./governance.ts";
import { MemoryWatch } from "./memory-watch.ts";
import type { ModelRouting } from "./model-routing.ts";
import type { Opened } from "./opened.ts";
import type { People } from "./people.ts";
import { readinessNow, readinessOf } from "./readiness.ts";
import { ServerMetrics, type ServerMetricsOptions } from "./server-metrics.ts";
import { SystemHealth } from "./system-health.ts";

export interface ObservationOptions {
  config: Config;
  log: Log;
  clock: Clock;
  version: string;
  /** Unix seconds. */
  startedAt: number;
  db: Database;
  replicas: Replicas;
  governance: Governance;
  people: Pick<People, "failures">;
  routing: Pick<
    ModelRouting,
    | "budget"
    | "catalog"
    | "router"
    | "capacity"
    | "overflow"
    | "commands"
    | "sources"
    | "network"
    | "upstreams"
    | "healths"
  >;
  /** The HTTP server; called only once it listens. */
  http: ServerMetricsOptions["http"];
  batches: ServerMetricsOptions["batches"];
  shadows: ServerMetricsOptions["shadows"];
  features: ServerMetricsOptions["features"];
  notices: ServerMetricsOptions["notices"];
  ofWorkers: ServerMetricsOptions["ofWorkers"];
  formSpace: ServerMetricsOptions["formSpace"];
  isDraining(): boolean;
  /** Returns the states of the secrets that the configuration refers to. */
  secrets(): readonly SecretState[];
  /** The bounds for exporting spans; undefined means the defaults. */
  spanBounds: Partial<ExportBounds> | undefined;
  opened: Opened;
}

export interface Observation {
  /** Observes each exchange and each inference request. */
  observer: Observer;
  /** Observes each tool call. */
  toolObserver: ToolObserver;
  /** Undefined if traces are not configured. */
  tracer: Tracer | undefined;
  readiness: ServiceRouteDeps["readiness"];
  health: SystemHealth;
  /** Returns the number of HTTP requests that have ended. */
  answered(): number;
  /** Records that an upstream accepted a request of a worker. */
  tookRequest(upstream: string): void;
  metrics: MetricsRouteDeps["metrics"];
}

export async function openObservation(options: ObservationOptions): Promise<Observation> {
  const { config, clock, version, startedAt, db, replicas, governance, people, opened } = options;
  const { budget, catalog, router, capacity, overflow, commands, sources, network, upstreams, healths } =
    options.routing;
  const memory = new MemoryWatch(bufferedBytes, clock);
  const checked = {
    authenticator: governance.authenticator,
    ledger: governance.ledger,
    installation: governance.installation,
    connections: () => options.http().connections,
    memory,
    catalog,
    replicas: config.databaseUrl === undefined ? undefined : replicas,
    redis: governance.redisCheck,
    resync: () => requireSync(db),
    writes: () => {
      if (fileOf(db)?.displaced !== undefined || governance.installation.isAnother) return "lost" as const;
      return replicas.canWrite && governance.ledger.isDrained && isSynced(db) ? "ok" : "refused";
    },
    ...{ isDraining: options.isDraining, secrets: options.secrets },
  };
  const metrics = new ServerMetrics({
    ...{ version, startedAt, clock, governance, catalog, router, capacity, overflow, sources, replicas },
    ...{ commands, budget, healths },
    mode: config.mode,
    database: dialectOf(db),
    failedSignIns: people.failures,
    nodes: network.directory,
    readiness: () => readinessNow(checked),
    secrets: options.secrets,
    http: options.http,
    batches: options.batches,
    shadows: options.shadows,
    features: options.features,
    notices: options.notices,
    ofWorkers: options.ofWorkers,
    formSpace: options.formSpace,
    exports: () => exports.sinks(),
  });
  const exports = await exportsOf(options, async () => (await metrics.read("")).text);
  const readiness = () => readinessOf(checked);
  const health = opened.add(
    new SystemHealth({
      ...{ version, config, startedAt, db, replicas, upstreams, governance, capacity, readiness },
      ...{ ofWorkers: options.ofWorkers, secrets: options.secrets, exports },
      onDelay(delayMs) {
        metrics.loopDelayed(delayMs);
        memory.check();
      },
    }),
  );
  const tracing = await loadTracing(options);
  return {
    observer: metrics.observer,
    toolObserver: metrics.tools,
    tracer: tracing?.tracer,
    readiness,
    health,
    answered: () => metrics.httpRequests,
    tookRequest: (upstream) => metrics.tookRequest(upstream),
    metrics: {
      token: config.metricsToken,
      isOpenLocally: config.mode === "development",
      read: (accept) => metrics.read(accept),
    },
  };
}

function exportsOf(options: ObservationOptions, readMetrics: () => Promise<string>): Promise<Exports> {
  const { config, db, version, startedAt, replicas, governance, clock, log, opened } = options;
  return openExports({
    ...{ config: config.export, audit: config.audit, db, startedAt, readMetrics, clock, log, opened },
    resource: { serviceName: config.tracing?.serviceName ?? "headrace", version, instanceId: replicas.id },
    deletionClock: governance.deletionClock,
  });
}

/** Loads tracing code only if traces are configured. */
async function loadTracing(options: ObservationOptions): Promise<Tracing | undefined> {
  const { config, log, version, replicas, spanBounds: bounds, opened } = options;
  if (!config.tracing) return undefined;
  const { openTracing } = await import("../tracing/open-tracing.ts");
  return opened.add(openTracing({ ...config.tracing, log, version, instanceId: replicas.id, bounds }));
}
