// Composes the routing of model requests: engines, upstreams and nodes, their catalog, health, load and slots.

import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config, ReloadableConfig } from "../config/config.ts";
import type { ChangeFeed } from "../domain/change-feed.ts";
import { fileEngineName } from "../domain/models/engine.ts";
import type { LlamaEngine } from "../engines/llama/llama-engine.ts";
import { Catalog } from "../inference/models/catalog.ts";
import { ManagedModels } from "../inference/models/manage-models.ts";
import { Upstreams } from "../inference/models/manage-upstreams.ts";
import { ModelStatus } from "../inference/models/model-status.ts";
import { UpstreamHealths } from "../inference/models/upstream-health.ts";
import { Overflow } from "../inference/overflow/overflow.ts";
import { OverflowSpending } from "../inference/overflow/overflow-spending.ts";
import { Capacity } from "../inference/routing/capacity.ts";
import { LoadReader } from "../inference/routing/load-reader.ts";
import { RestProbes } from "../inference/routing/rest-probes.ts";
import { Router } from "../inference/routing/route.ts";
import { RoutingWatcher } from "../inference/routing/routing-watcher.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlModelStore } from "../storage/tables/model-store.ts";
import { SqlOverflowSpendStore } from "../storage/tables/models/overflow-spend-store.ts";
import { SqlUpstreamStore } from "../storage/tables/upstream-store.ts";
import { createBuiltInEngine } from "./built-in-models.ts";
import { EngineSources } from "./engine-sources.ts";
import type { Governance } from "./governance.ts";
import { openModelProcesses } from "./model-processes.ts";
import { openNodeNetwork } from "./node-network.ts";
import type { Opened } from "./opened.ts";

export interface ModelRoutingOptions {
  db: Database;
  config: Config;
  governance: Governance;
  feed: ChangeFeed;
  replicas: Replicas;
  clock: Clock;
  log: Log;
  version: string;
  /** The interval of reading the load of servers in use; undefined means the default. */
  loadReadMs: number | undefined;
  /**
   * Returns the base URL with `/v1`. The value is a function, because a port of 0 is known only once the server
   * listens.
   */
  baseUrl(): string;
  opened: Opened;
}

export type ModelRouting = Awaited<ReturnType<typeof openModelRouting>>;

/**
 * Opens the routing. Resolves when the built-in engine's models are known. The engine loads nothing and no node is
 * accepted before their `start` is called.
 */
export async function openModelRouting(options: ModelRoutingOptions) {
  const { db, config, governance, feed, replicas, clock, log, version, baseUrl, opened } = options;
  const catalog = new Catalog({ log, clock });
  const { commands, budget } = await openModelProcesses({
    ...{ config, clock, log },
    onOpen: (command) => capacity.opened(command),
    // Refresh the catalog, which notifies the router that the new process has no failures yet.
    onLoaded: (command) => void catalog.refreshSource(command),
  });
  opened.add(commands);
  const engine: LlamaEngine = opened.add(
    await createBuiltInEngine({
      ...{ config, budget, log },
      elsewhere: new Set(
        config.engine.files
          .filter(({ program, model }) => commands.find(fileEngineName(program, model)))
          .map(({ model }) => model),
      ),
      onReady: () => void catalog.refresh(),
      onOpen: () => capacity.opened(engine),
    }),
  );
  const sources = new EngineSources(engine, commands.engines, config);
  const configure = () => catalog.configure(sources.list(), sources.declaredModels());
  const router = new Router(clock);
  router.gateways = () => replicas.count;
  catalog.watcher = router;
  opened.add(new RestProbes({ router, catalog }));
  opened.add(
    new LoadReader({
      engines: () => sources.known().map((known) => known.engine),
      ...{ router, clock },
      everyMs: options.loadReadMs,
    }),
  );
  const capacity = new Capacity({
    ...{ clock, router },
    maxIdle: () => sources.config.batches.unboundedConcurrency,
    bounds: () => queueBounds(sources.config),
  });
  const overflow = openOverflow(options, { router, capacity });
  const healths = openHealths(options, { router, sources });
  const store = new SqlUpstreamStore(db);
  const upstreams = new Upstreams({
    ...{ store, sources, catalog, router, capacity, healths, configure, clock, log },
    sealingKey: governance.keyFor("upstream-seal-v1"),
    announce: () => feed.announce("routing"),
  });
  const modelStatus = new ModelStatus({ catalog, router, capacity, healths, speeds: governance.speeds, clock });
  const managedModels = new ManagedModels({
    ...{ store: new SqlModelStore(db), sources, catalog, modelStatus, capacity, configure },
    ...{ spending: overflow.spending, announce: () => feed.announce("routing") },
  });
  const network = await openNodeNetwork({
    ...{ db, config, governance, feed, sources, catalog, router, capacity, clock, log, version },
    ...{ baseUrl, configure, opened },
    replicaId: replicas.id,
    drainedChanged: () => upstreams.reload(),
  });
  await Promise.all([upstreams.load(), managedModels.load()]);
  configure();
  // The models are known before the first request. Loading starts later, once the port is certainly free.
  await catalog.refreshSource(engine, ...commands.engines);

  const watcher = watchReplicas({ config, store, feed, log, opened }, async () => {
    await managedModels.load();
    await upstreams.reload();
    await network.directory.refresh();
  });
  return {
    ...{ engine, commands, budget, sources, catalog, router, capacity, overflow, healths },
    ...{ upstreams, managedModels, modelStatus, network, configure, watcher },
  };
}

function openHealths(
  { replicas, clock, log, opened }: ModelRoutingOptions,
  parts: { router: Router; sources: EngineSources },
): UpstreamHealths {
  const healths = new UpstreamHealths({ ...parts, clock, log, others: () => replicas.othersAttempts });
  replicas.attempts = () => healths.reports();
  return opened.add(healths);
}

function openOverflow(
  { db, governance, clock, log, opened }: ModelRoutingOptions,
  parts: { router: Router; capacity: Capacity },
): Overflow {
  const spending = opened.add(new OverflowSpending({ store: new SqlOverflowSpendStore(db), clock, log }));
  return new Overflow({ ...parts, spending, lengths: governance.lengths, clock });
}

function queueBounds({ limits: { queue, queueSeconds } }: ReloadableConfig) {
  return { maxWaiting: queue, maxWaitMs: queueSeconds * 1000 };
}

/** Follows changes of other replicas. A SQLite file has no second process that changes routing settings. */
function watchReplicas(
  {
    config,
    opened,
    ...parts
  }: Pick<ModelRoutingOptions, "config" | "feed" | "log" | "opened"> & { store: SqlUpstreamStore },
  reload: () => Promise<void>,
): RoutingWatcher | undefined {
  if (config.databaseUrl === undefined) return undefined;
  const watcher = opened.add(new RoutingWatcher({ ...parts, reload }));
  watcher.start();
  return watcher;
}
