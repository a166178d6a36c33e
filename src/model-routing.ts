// Composes where requests for a model go: engines, upstreams and nodes, their catalog, health, load and places.
import { createBuiltInEngine } from "./built-in-models.ts";
import type { Config } from "./config.ts";
import type { ChangeFeed } from "./domain/change-feed.ts";
import type { Clock } from "./domain/clock.ts";
import type { Log } from "./domain/log.ts";
import { EngineSources } from "./engine-sources.ts";
import type { Governance } from "./governance.ts";
import { Capacity } from "./inference/capacity.ts";
import { Catalog } from "./inference/catalog.ts";
import { LoadReader } from "./inference/load-reader.ts";
import { Upstreams } from "./inference/manage-upstreams.ts";
import { RestProbes } from "./inference/rest-probes.ts";
import { Router } from "./inference/route.ts";
import { RoutingWatcher } from "./inference/routing-watcher.ts";
import { openNodeNetwork } from "./node-network.ts";
import type { Replicas } from "./policy/replicas.ts";
import type { Database } from "./storage/database.ts";
import { SqlUpstreamStore } from "./storage/upstream-store.ts";

export interface ModelRoutingOptions {
  db: Database;
  config: Config;
  governance: Governance;
  feed: ChangeFeed;
  replicas: Replicas;
  clock: Clock;
  log: Log;
  version: string;
  /** How often servers that requests go to are asked how busy they are; undefined: as usual. */
  loadReadMs: number | undefined;
  /** What clients use, with `/v1`; asked late, as a port of 0 is known only once the server listens. */
  baseUrl(): string;
  /** Takes what has to be closed, in the order in which it was opened. */
  opened(close: () => unknown): void;
}

export type ModelRouting = Awaited<ReturnType<typeof openModelRouting>>;

/** Resolves when the built-in engine's models are known; nothing is loaded, and no node let in, before `start` of either. */
export async function openModelRouting(options: ModelRoutingOptions) {
  const { db, config, governance, feed, replicas, clock, log, version, baseUrl, opened } = options;
  const catalog = new Catalog({ log, clock });
  const engine = await createBuiltInEngine(config, log, () => void catalog.refresh());
  opened(() => engine.close());
  const sources = new EngineSources(engine, config);
  const configure = () => catalog.configure(sources.list(), sources.declaredModels());
  const router = new Router(clock);
  router.gateways = () => replicas.count;
  catalog.watcher = router;
  const probes = new RestProbes({ router, catalog });
  opened(() => probes.close());
  const loads = new LoadReader({
    engines: () => sources.known().map((known) => known.engine),
    ...{ router, clock },
    everyMs: options.loadReadMs,
  });
  opened(() => loads.close());
  const capacity = new Capacity({
    ...{ clock, router },
    bounds: () => {
      const { queue, queueSeconds } = sources.config.limits;
      return { maxWaiting: queue, longestWaitMs: queueSeconds * 1000 };
    },
  });
  const store = new SqlUpstreamStore(db);
  const upstreams = new Upstreams({
    ...{ store, sources, catalog, router, capacity, configure, log },
    sealingKey: governance.keyFor("upstream-seal-v1"),
    announce: () => feed.announce("routing"),
  });
  const network = await openNodeNetwork({
    ...{ db, config, governance, feed, sources, catalog, router, capacity, clock, log, version },
    ...{ baseUrl, configure, opened },
    replicaId: replicas.id,
    drainedChanged: () => upstreams.reload(),
  });
  await upstreams.load();
  configure();
  // Known before the first request can come; loading waits until it is clear that the port is free.
  await catalog.refreshSource(engine);

  // Nobody else writes to a file of SQLite what is routed by.
  if (config.databaseUrl !== undefined) {
    const reload = async () => {
      await upstreams.reload();
      await network.directory.refresh();
    };
    const watcher = new RoutingWatcher({ store, feed, reload, log });
    watcher.start();
    opened(() => watcher.close());
  }
  return { engine, sources, catalog, router, capacity, upstreams, network, configure };
}
