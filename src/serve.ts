// The composition root: the only file that knows all adapters. A test starts it on port 0 with a temporary directory.
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { checkModelFiles, createBuiltInEngine } from "./built-in-models.ts";
import type { Config, ReloadableConfig } from "./config.ts";
import { type ChangeFeed, noChangeFeed } from "./domain/change-feed.ts";
import { type Clock, systemClock } from "./domain/clock.ts";
import type { Log } from "./domain/log.ts";
import { EngineSources } from "./engine-sources.ts";
import type { LlamaEngine } from "./engines/llama/llama-engine.ts";
import { type FoundServer, findLocalServers, knownLocalServers, type LocalServer } from "./engines/local-servers.ts";
import { type Governance, openGovernance } from "./governance.ts";
import { trustedProxies } from "./http/client-address.ts";
import { createRoutes } from "./http/routes.ts";
import { startHttpServer } from "./http/server.ts";
import { Capacity } from "./inference/capacity.ts";
import { Catalog } from "./inference/catalog.ts";
import { LoadReader } from "./inference/load-reader.ts";
import { Upstreams } from "./inference/manage-upstreams.ts";
import { ModelStatus } from "./inference/model-status.ts";
import { RestProbes } from "./inference/rest-probes.ts";
import { Router } from "./inference/route.ts";
import { RoutingWatcher } from "./inference/routing-watcher.ts";
import { Stopping } from "./inference/stopping.ts";
import { UpstreamTests } from "./inference/upstream-test.ts";
import { type NodeNetwork, openNodeNetwork } from "./node-network.ts";
import { openPeople, type People } from "./people.ts";
import { ensureFirstKey, type FirstKey } from "./policy/first-key.ts";
import { Replicas } from "./policy/replicas.ts";
import { readinessOf } from "./readiness.ts";
import { readCredentials, removeCredentials, useCredentialsOf, writeCredentials } from "./storage/credentials-file.ts";
import { lockDataDirectory } from "./storage/data-directory-lock.ts";
import { observed, openDatabase, openPostgres, waitBriefly } from "./storage/database.ts";
import type { PoolBounds } from "./storage/postgres-pool.ts";
import { RedisChangeFeed } from "./storage/redis-change-feed.ts";
import { SqlReplicaStore } from "./storage/replica-store.ts";
import { SqlUpstreamStore } from "./storage/upstream-store.ts";
import { SystemHealth } from "./system-health.ts";

export type { FirstKey };

export interface ServeOptions {
  log: Log;
  clock?: Clock;
  /** Where to look for model servers on this machine. */
  localServers?: readonly LocalServer[];
  /** Silence of an engine after which a stream gets a comment line. */
  heartbeatMs?: number;
  /** How often engines are asked for their models. */
  pollMs?: number;
  /** Of PostgreSQL; the usual unless a test has less patience. */
  databaseBounds?: PoolBounds;
  /** How often servers that requests go to are asked how busy they are. */
  loadReadMs?: number;
  /** Told of every statement; a test shows with it what reads nothing. */
  onDatabaseUse?: () => void;
}

export interface RunningServer {
  /** The address it listens on, e.g. `http://127.0.0.1:7545`. */
  url: string;
  port: number;
  /** What clients use; ends in `/v1`. */
  baseUrl: string;
  firstKey: FirstKey;
  catalog: Catalog;
  engine: LlamaEngine;
  capacity: Capacity;
  governance: Governance;
  people: People;
  replicas: Replicas;
  network: NodeNetwork;
  /** Works once, for the first person; undefined where there is somebody already. A secret. */
  setupLink: string | undefined;
  /** Model servers found on this machine at start; resolves once the look is done. */
  localServers: Promise<readonly FoundServer[]>;
  /** Takes over a changed file's part that can change while running. */
  reload(config: ReloadableConfig): Promise<void>;
  /** Refuses new requests, lets open ones end for `drainMs`, then closes everything. */
  close(drainMs?: number): Promise<void>;
}

const defaultPollMs = 30_000;
const defaultHeartbeatMs = 10_000;
const farewellMs = 500;
const databaseName = "headrace.db";

export async function serve(config: Config, options: ServeOptions): Promise<RunningServer> {
  const opened: (() => unknown)[] = [];
  let closing: Promise<void> | undefined;
  const closeAll = () => {
    closing ??= closeEach(opened.toReversed(), options.log);
    return closing;
  };
  try {
    return await compose(config, options, opened, closeAll);
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Nobody is there to be told where there is one process alone. */
async function openChangeFeed(
  { redisUrl }: Pick<Config, "redisUrl">,
  log: Log,
  opened: (() => unknown)[],
): Promise<ChangeFeed> {
  if (redisUrl === undefined) return noChangeFeed;
  const feed = await RedisChangeFeed.open({ url: redisUrl, log });
  opened.push(() => feed.close());
  return feed;
}

/** One part that fails to close must not keep the others, the ledger and the lock among them, from being closed. */
async function closeEach(closers: readonly (() => unknown)[], log: Log): Promise<void> {
  for (const close of closers) {
    try {
      await close();
    } catch (error) {
      log.error("close_failed", { detail: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
}

/** Adds to `opened` how to close each part, in the order in which they were opened. */
async function compose(
  config: Config,
  options: ServeOptions,
  opened: (() => unknown)[],
  closeAll: () => Promise<void>,
): Promise<RunningServer> {
  const { log, clock = systemClock, heartbeatMs = defaultHeartbeatMs, pollMs = defaultPollMs } = options;
  checkModelFiles(config);
  prepareDirectory(config);
  opened.push(lockDataDirectory(config.dataDir));
  const startedAt = clock.nowSeconds();
  const { databaseUrl } = config;
  const db = await (databaseUrl === undefined
    ? openDatabase(join(config.dataDir, databaseName))
    : openPostgres(databaseUrl, { bounds: options.databaseBounds }));
  opened.push(() => db.close());
  const feed = await openChangeFeed(config, log, opened);
  const { version } = packageJson;
  const replicas = new Replicas({
    ...{ store: new SqlReplicaStore(db), log, version },
    advertiseUrl: config.advertiseUrl ?? null,
    isShared: config.databaseUrl !== undefined,
    sharesLimits: config.redisUrl !== undefined,
  });
  await replicas.start();
  opened.push(() => replicas.close());
  let baseUrl = "";
  const governance = await openGovernance({
    db: options.onDatabaseUse ? observed(db, options.onDatabaseUse) : db,
    config,
    log,
    clock,
    baseUrl: () => baseUrl,
    feed,
    countReplicas: () => replicas.count,
    opened: (close) => opened.push(close),
  });
  const { keys, accounts, pepper } = governance;
  const people = openPeople({
    db,
    config,
    clock,
    log,
    governance,
    baseUrl: () => baseUrl,
    opened: (close) => opened.push(close),
  });

  const catalog = new Catalog({ log, clock });
  const engine = await createBuiltInEngine(config, log, () => void catalog.refresh());
  opened.push(() => engine.close());
  const sources = new EngineSources(engine, config);
  const configure = () => catalog.configure(sources.list(), sources.declaredModels());
  const router = new Router(clock);
  router.gateways = () => replicas.count;
  catalog.watcher = router;
  const probes = new RestProbes({ router, catalog });
  const loads = new LoadReader({
    engines: () => sources.known().map((known) => known.engine),
    router,
    clock,
    everyMs: options.loadReadMs,
  });
  opened.push(
    () => probes.close(),
    () => loads.close(),
  );
  const capacity = new Capacity({
    clock,
    router,
    bounds: () => {
      const { queue, queueSeconds } = sources.config.limits;
      return { maxWaiting: queue, longestWaitMs: queueSeconds * 1000 };
    },
  });
  const upstreamStore = new SqlUpstreamStore(db);
  const upstreams = new Upstreams({
    store: upstreamStore,
    sealingKey: governance.keyFor("upstream-seal-v1"),
    ...{ sources, catalog, router, capacity, configure, log },
    announce: () => feed.announce("routing"),
  });
  const network = await openNodeNetwork({
    ...{
      db,
      config,
      governance,
      feed,
      replicaId: replicas.id,
      sources,
      catalog,
      router,
      capacity,
      clock,
      log,
      version,
    },
    baseUrl: () => baseUrl,
    configure,
    drainedChanged: () => upstreams.reload(),
    opened: (close) => opened.push(close),
  });
  await upstreams.load();
  configure();
  // Known before the first request can come; loading waits until it is clear that the port is free.
  await catalog.refreshSource(engine);

  // Nobody else writes to a file of SQLite what is routed by.
  if (config.databaseUrl !== undefined) {
    const routing = new RoutingWatcher({
      store: upstreamStore,
      feed,
      reload: async () => {
        await upstreams.reload();
        await network.directory.refresh();
      },
      log,
    });
    routing.start();
    opened.push(() => routing.close());
  }

  let draining = false;
  const stopping = new Stopping();
  const readiness = () =>
    readinessOf({
      authenticator: governance.authenticator,
      catalog,
      replicas: config.databaseUrl === undefined ? undefined : replicas,
      redis: governance.redisCheck,
      isDraining: () => draining,
    });
  const health = new SystemHealth({
    ...{ version, config, startedAt, db, replicas, governance, capacity, readiness },
  });
  opened.push(() => health.close());
  const routes = createRoutes({
    ...governance,
    ...people,
    ...network.routes,
    catalog,
    router,
    capacity,
    upstreams,
    upstreamTests: new UpstreamTests({ upstreams, probe: (url, apiKey) => sources.probe(url, apiKey), clock }),
    clock,
    heartbeatMs,
    stopping,
    requestLimits: () => sources.config.limits,
    modelStatus: new ModelStatus({ catalog, router, capacity, speeds: governance.speeds, clock }),
    version,
    readiness,
    systemHealth: () => health.figures(),
  });
  const server = startHttpServer({
    hostname: config.host,
    port: config.port,
    routes,
    authenticator: governance.authenticator,
    sessions: people.sessionPrincipals,
    resourceMetadata: () => `${baseUrl.replace(/\/v1$/, "")}/.well-known/oauth-protected-resource/v1`,
    trustedProxies: trustedProxies(config.trustedProxies),
    corsOrigins: () => sources.config.cors.origins,
    log,
    clock,
  });
  opened.push(() => server.close());
  const { port } = server;
  const url = `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`;
  baseUrl = `${config.publicUrl ?? url}/v1`;

  engine.start();
  network.start();
  // Only now, when nothing can keep the server from telling it: the key is shown once.
  const accountId = await accounts.ensureFirstAccount(clock.nowSeconds());
  const environment = config.mode === "development" ? "dev" : "live";
  useCredentialsOf(config.dataDir, environment);
  const firstKey = await ensureFirstKey(keys, {
    accountId,
    environment,
    pepper,
    clock,
    keep(key) {
      const before = readCredentials(config.dataDir);
      writeCredentials(config.dataDir, { base_url: baseUrl, api_key: key });
      return () => (before ? writeCredentials(config.dataDir, before) : removeCredentials(config.dataDir));
    },
  });
  keepAddress(config.dataDir, baseUrl);
  const setupLink = await people.setupLink();
  await waitBriefly(db);

  const look = async () => {
    if (!config.discoverLocal) return [];
    const found = await findLocalServers(options.localServers ?? knownLocalServers, port);
    if (config.mode === "development" && sources.addLocal(found)) configure();
    return found;
  };
  const localServers = look();
  void localServers.then(() => catalog.refresh());
  // Production only tells once what it found: it does not serve it.
  const again = config.mode === "development" ? look : async () => {};
  const poller = setInterval(() => void again().then(() => catalog.refresh()), pollMs);
  opened.push(() => clearInterval(poller));

  return {
    url,
    port,
    baseUrl,
    firstKey,
    catalog,
    engine,
    capacity,
    governance,
    people,
    replicas,
    network,
    setupLink,
    localServers,
    async reload(changed) {
      sources.config = changed;
      governance.reconfigure(changed);
      configure();
      network.reconfigured();
      await catalog.refresh();
      capacity.regroup();
    },
    async close(drainMs = 0) {
      draining = true;
      const drained = Promise.all([server.stop(), network.drain()]);
      await Promise.race([drained, Bun.sleep(drainMs)]);
      // Who is still served then is told so, and given a moment to receive it.
      stopping.begin();
      await Promise.race([drained, Bun.sleep(Math.min(drainMs, farewellMs))]);
      await closeAll();
    },
  };
}

/**
 * For its owner only: keys' digests, usage and stored chats are in it. A directory that was there, such as a mounted volume,
 * may be open to others, so its files are not; SQLite gives its journals the mode of the database.
 */
function prepareDirectory({ dataDir, databaseUrl }: Config): void {
  if (!existsSync(dataDir)) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    chmodSync(dataDir, 0o700);
  }
  for (const name of databaseUrl === undefined ? [databaseName, "server.lock"] : ["server.lock"]) {
    const file = join(dataDir, name);
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
  }
  // Left by a process that was killed: they are used on as they are.
  for (const name of [`${databaseName}-wal`, `${databaseName}-shm`]) {
    const file = join(dataDir, name);
    if (existsSync(file)) chmodSync(file, 0o600);
  }
}

/** A later start may have another address; the key in the file is known to nobody else. */
function keepAddress(dataDir: string, baseUrl: string): void {
  const existing = readCredentials(dataDir);
  if (existing && existing.base_url !== baseUrl) writeCredentials(dataDir, { ...existing, base_url: baseUrl });
}
