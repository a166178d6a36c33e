// The composition root: the only file that knows all adapters. Tests start it on port 0 with a temporary directory.
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { AccountMemory, bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { BatchTimes } from "../batches/batch-runner.ts";
import {
  type Config,
  type ConfigFile,
  loadPullSource,
  processEnvironment,
  type SecretValues,
} from "../config/config.ts";
import type { McpServer } from "../domain/tools/mcp-server.ts";
import type { Commands } from "../engines/commands/commands.ts";
import { defaultHubTiming, type Hub } from "../engines/llama/hub-request.ts";
import type { LlamaEngine } from "../engines/llama/llama-engine.ts";
import { type FoundServer, findLocalServers, knownLocalServers, type LocalServer } from "../engines/local-servers.ts";
import { openFeatures } from "../features/features.ts";
import { trustedProxies } from "../http/exchange/client-address.ts";
import { Locality } from "../http/exchange/locality.ts";
import { startHttpServer } from "../http/exchange/server.ts";
import { createFirstRoutes } from "../http/first-routes.ts";
import type { Http1Server } from "../http1/server/server.ts";
import type { Http1Limits } from "../http1/server/server-limits.ts";
import type { Catalog } from "../inference/models/catalog.ts";
import { ModelProcesses } from "../inference/models/manage-model-processes.ts";
import { PulledModels } from "../inference/models/manage-pulled-models.ts";
import { PoliciesWithoutEffect } from "../inference/models/policies-without-effect.ts";
import { UpstreamTests } from "../inference/models/upstream-test.ts";
import type { OwnCalls } from "../inference/own-calls.ts";
import type { Capacity } from "../inference/routing/capacity.ts";
import { Shadows } from "../inference/shadow/shadows.ts";
import { Stopping } from "../inference/stopping.ts";
import type { PersonConnections } from "../mcp/connections/person-connections.ts";
import { SpoolSpace } from "../multipart/spool-space.ts";
import type { AddressLimit } from "../policy/address-throttle.ts";
import { ensureFirstKey, type FirstKey } from "../policy/credentials/first-key.ts";
import { suspendedCheck } from "../policy/credentials/suspensions.ts";
import { LongConnections } from "../policy/long-connections.ts";
import { OpenRequests } from "../policy/open-requests.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import { RequestTags } from "../policy/request-tags.ts";
import { BackgroundRuns } from "../responses/background/background-runs.ts";
import {
  readCredentials,
  removeCredentials,
  useCredentialsOf,
  writeCredentials,
} from "../storage/files/credentials-file.ts";
import { observed, waitBriefly } from "../storage/sql/database.ts";
import type { PoolBounds } from "../storage/sql/postgres-pool.ts";
import type { ExportBounds } from "../tracing/export.ts";
import { openBatches } from "./batches/batches.ts";
import { openFiles } from "./batches/files.ts";
import { checkModelFiles, openPulledModels } from "./built-in-models.ts";
import { type Governance, openGovernance } from "./governance.ts";
import { openAnswerCache } from "./inference/answer-cache.ts";
import { filesElsewhere } from "./llama-server-files.ts";
import { sharedMemory } from "./model-processes.ts";
import { openModelRouting } from "./model-routing.ts";
import type { NodeNetwork } from "./node-network.ts";
import { type NotificationParts, type NotificationTimes, openNotifications } from "./notifications.ts";
import { openObservation } from "./observation.ts";
import { Opened } from "./opened.ts";
import { openOwnCalls } from "./own-calls.ts";
import { openPeople, type People, type PeopleOptions } from "./people.ts";
import { freePort, innerSocket, removeLeftSockets, socketDirectory } from "./primary/sockets.ts";
import { openRecords } from "./records.ts";
import { replySeals } from "./reply-seals.ts";
import { startFailure } from "./start-failure.ts";
import { openToolUses, type ToolUseParts } from "./tools/tool-uses.ts";
import { openTools } from "./tools/tools.ts";
import type { Workers } from "./workers.ts";

export type { FirstKey };

export interface ServeOptions {
  log: Log;
  /** The secrets that the configuration refers to. */
  secrets?: SecretValues;
  /** Receives whole log lines of workers; by default they go to standard output. */
  passLines?: (lines: Uint8Array) => void;
  clock?: Clock;
  /** The addresses to check for model servers on this machine. */
  localServers?: readonly LocalServer[];
  /** Returns the hub that models are pulled from. Tests replace it. */
  hub?: () => Hub;
  /** The silence of an engine, in milliseconds, after which a stream gets a comment line. */
  heartbeatMs?: number;
  /** Limits for slow and silent clients; the defaults apply if absent. */
  httpLimits?: Partial<Http1Limits>;
  /** The interval of polling engines for their models. */
  pollMs?: number;
  /** The bounds of PostgreSQL's pool. Tests shorten them. */
  databaseBounds?: PoolBounds;
  /** The bounds for exporting spans. Tests shorten them. */
  spanBounds?: Partial<ExportBounds>;
  /** The interval of reading the load of servers in use. */
  loadReadMs?: number;
  /** Limits of clients without a credential. Tests lower them. */
  addressLimits?: Partial<Record<AddressLimit, number>>;
  /** Times of notifications and deliveries. Tests shorten them. */
  notificationTimes?: NotificationTimes;
  /** Options for fetching client documents. Tests serve documents from this machine. */
  documentFetch?: PeopleOptions["documentFetch"];
  /** The times of the batch work. Tests shorten them. */
  batchTimes?: BatchTimes;
  /** Called for each SQL statement. With it, tests prove that code makes no query. */
  onDatabaseUse?: () => void;
  /** Replaces the file's MCP servers. Tests change them. */
  mcpServers?: () => readonly McpServer[];
}

export interface RunningServer {
  /** The listening address, e.g. `http://127.0.0.1:7545`. */
  url: string;
  port: number;
  /** The base URL for clients; ends in `/v1`. */
  baseUrl: string;
  firstKey: FirstKey;
  catalog: Catalog;
  engine: LlamaEngine;
  commands: Commands;
  capacity: Capacity;
  governance: Governance;
  people: People;
  /** People's tokens for MCP servers. */
  personConnections: PersonConnections;
  replicas: Replicas;
  network: NodeNetwork;
  notices: NotificationParts;
  ownCalls: OwnCalls;
  /** The recording of tool calls, and the sampling requests of MCP servers. */
  tools: ToolUseParts;
  /** Deletes expired files now, which also happens every minute. */
  sweepFiles(): Promise<void>;
  /** Undefined if this process serves all requests. */
  workers: Workers | undefined;
  /** The one-time setup link, a secret. Undefined if a person exists. */
  setupLink: string | undefined;
  /** Model servers found on this machine at start; resolves after the check. */
  localServers: Promise<readonly FoundServer[]>;
  /** Numbers of HTTP requests: ended, and without a complete answer. */
  requests(): { ended: number; open: number };
  /** Removes the credentials of all engines, including added ones, from the text. */
  redact(text: string): string;
  /** Applies the reloadable part of a changed file. */
  reload(config: ConfigFile, needRestart?: readonly string[]): Promise<void>;
  /** Reports to operators that a changed file was refused. */
  reloadRefused(why: string): void;
  /**
   * Stops the server. It reports not ready at once and still serves for `lameDuckMs`. Then it refuses new requests,
   * gives open ones `drainMs`, and closes everything.
   */
  close(drainMs?: number, lameDuckMs?: number): Promise<void>;
}

const defaultPollMs = 30_000;
const defaultHeartbeatMs = 10_000;
const farewellMs = 500;
const defaultHub = (): Hub => ({ ...loadPullSource(), timing: defaultHubTiming });
/** The milliseconds for which connections are refused, for load balancers without readiness checks. */
const refusingMs = 1_000;

export async function serve(config: Config, options: ServeOptions): Promise<RunningServer> {
  const opened = new Opened();
  try {
    return await compose(config, options, opened);
  } catch (error) {
    await opened.close(options.log);
    throw startFailure(error, config.dataDir);
  }
}

async function compose(config: Config, options: ServeOptions, opened: Opened): Promise<RunningServer> {
  const { log, clock = systemClock, heartbeatMs = defaultHeartbeatMs, pollMs = defaultPollMs } = options;
  checkModelFiles(config);
  const startedAt = clock.nowSeconds();
  const { version } = packageJson;
  const { db, feed, replicas } = await openRecords({
    ...{ config, log, version },
    databaseBounds: options.databaseBounds,
    opened,
  });
  let baseUrl = "";
  /** The id of the key in credentials.json, for development on one machine. */
  let ownerKeyId: string | undefined;
  let workers: Workers | undefined;
  const used = options.onDatabaseUse ? observed(db, options.onDatabaseUse) : db;
  const governance = await openGovernance({
    ...{ db: used, config, log, clock, feed },
    baseUrl: () => baseUrl,
    countReplicas: () => replicas.count,
    onChanged: () => workers?.changed(),
    ofWorkers: {
      flush: async () => (await workers?.flush()) ?? true,
      hold: async (...asked) => (await workers?.hold(...asked)) ?? (() => {}),
    },
    addressLimits: options.addressLimits,
    opened,
  });
  const { keys, accounts, pepper } = governance;
  const locality = new Locality(config.allowedHosts);
  const people = openPeople({
    ...{ db: used, config, clock, log, governance, locality },
    baseUrl: () => baseUrl,
    documentFetch: options.documentFetch,
    opened,
  });

  const routing = await openModelRouting({
    ...{ db, config, governance, feed, replicas, clock, log, version },
    loadReadMs: options.loadReadMs,
    baseUrl: () => baseUrl,
    opened,
  });
  const {
    engine,
    sources,
    catalog,
    router,
    capacity,
    overflow,
    upstreams,
    managedModels,
    modelStatus,
    network,
    configure,
  } = routing;

  bufferedBytes.maxBytes = config.limits.heldBytes;
  let draining = false;
  let refusing = false;
  let fileText = config.file.text;
  const stopping = new Stopping();
  const formSpace = new SpoolSpace(join(config.dataDir, "forms"), () => sources.config.limits.formDiskBytes);
  formSpace.sweep();
  const observation = await openObservation({
    ...{ config, log, clock, version, startedAt, db, replicas, governance, people, routing },
    http: (): Http1Server => server,
    formSpace,
    notices: () => notices.figures(),
    batches: () => batches.batchRunner.figures,
    shadows: () => shadows.counts,
    features: (out) => features.writeMetrics(out),
    isDraining: () => draining || upstreams.isReplicaDrained(replicas.id),
    secrets: () => options.secrets?.states ?? [],
    ofWorkers: config.workers === 1 ? undefined : async () => (await workers?.metrics()) ?? [],
    spanBounds: options.spanBounds,
    opened,
  });
  const { tracer, readiness, health, answered, metrics } = observation;
  const notices: NotificationParts = openNotifications({
    ...{ db, config, governance, people, routing, replicas, clock, log, opened },
    observer: observation.observer,
    times: options.notificationTimes,
  });
  const { observer } = notices;
  const openRequests = new OpenRequests(() => sources.config.limits.openRequestsPerKey, bufferedBytes);
  const longConnections = new LongConnections({ clock, connectionLimit: () => server.connections.limit });
  governance.suspensions.onSuspended((ids) => {
    stopping.suspend(suspendedCheck(ids));
    longConnections.check();
    workers?.suspended(ids);
  });
  const { responses, background } = governance;
  const backgroundRuns = opened.add(new BackgroundRuns({ responses, background, clock, log }));
  const { deletionClock } = governance;
  const files = await openFiles({ db, config, clock, deletionClock, log, opened });
  const plain = {
    ...governance,
    ...{ catalog, router, capacity, overflow, clock, stopping, heartbeatMs, observer, quotaWatch: notices.quotaWatch },
    requestTags: new RequestTags({ settings: () => sources.config.tags, clock }),
    sealFor: replySeals(governance.keyFor("reply-seal-v1"), governance.pseudonymKey),
  };
  const ownCalls = openOwnCalls({ config, governance, inference: plain, clock, current: () => sources.config });
  const { answerCache, keptAnswers } = await openAnswerCache({
    ...{ config, governance, feed, ownCalls, clock, log, opened },
  });
  const features = await openFeatures({ ownCalls, current: () => sources.config });
  const memoryAccount = bufferedBytes.memoryAccount(new AccountMemory());
  const { stages } = features;
  const shadows = new Shadows({ ownCalls, catalog, capacity, guardrails: stages.guardrails, memoryAccount });
  const inference = { ...plain, shadows, answerCache, ...stages };
  const tools = openToolUses({
    ...{ governance, inference, catalog, openRequests, quotaWatch: notices.quotaWatch },
    observer: observation.toolObserver,
    current: () => sources.config,
  });
  const toolParts = await openTools({
    ...{ db, config, governance, dataDir: config.dataDir, version, clock, log, opened, uses: tools },
    ...{ feed, watcher: routing.watcher, incidents: notices.incidentWatch, nodes: network.toolNodes },
    servers: options.mcpServers,
    current: () => sources.config,
    installationUrl: () => baseUrl.replace(/\/v1$/, ""),
  });
  const batches = openBatches({
    ...{ db, config, governance, files, openRequests, inference, clock, log, opened },
    current: () => sources.config,
    times: options.batchTimes,
  });
  const { routes, others } = createFirstRoutes({
    ...inference,
    hosted: {
      tools: toolParts.modelTools,
      approved: toolParts.approvedCalls,
      still: (principal) => governance.authenticator.still(principal),
      requestLimits: () => sources.config.limits,
    },
    keptAnswers,
    ...files,
    ...batches,
    backgroundRuns,
    ...people,
    ...network.routes,
    ...notices.routes,
    ...toolParts,
    isAllowedOrigin: (origin, exchange) =>
      people.isOwnOrigin(origin, exchange.req) ||
      sources.config.cors.origins.some((one) => one === "*" || one === origin),
    upstreams,
    managedModels,
    guardrailSettings: () => sources.config.guardrails,
    pulledModels: new PulledModels({
      store: opened.add(openPulledModels(config, options.hub ?? defaultHub, log)),
      ...{ audit: governance.audit, isAuditRequired: config.audit.required, catalog, log },
      ...{ engine, elsewhere: filesElsewhere(config, routing.commands) },
    }),
    modelProcesses: new ModelProcesses({
      processes: routing.commands.engines.map((command) => command.control()),
      memory: () => sharedMemory(routing.budget),
      ...{ capacity, audit: governance.audit },
    }),
    upstreamTests: new UpstreamTests({ upstreams, probe: (...server) => sources.probe(...server), clock }),
    openRequests,
    longConnections,
    installationUrl: () => baseUrl.replace(/\/v1$/, ""),
    requestLimits: () => sources.config.limits,
    forms: { space: formSpace, limits: () => sources.config.limits },
    modelStatus,
    version,
    readiness,
    systemHealth: () => health.figures(),
    async configInEffect() {
      const { configInEffect } = await import("../config/in-effect.ts");
      const { file, flags } = config;
      const env = processEnvironment();
      return configInEffect({
        path: file.path,
        startup: file.text,
        reloaded: fileText,
        flags,
        env,
        secrets: options.secrets,
      });
    },
    metrics,
  });
  removeLeftSockets(config.dataDir);
  const shared = config.workers === 1 ? undefined : openShared(config, opened);
  const server: Http1Server = startHttpServer({
    ...(shared ? { unix: innerSocket(shared.directory) } : { hostname: config.host, port: config.port }),
    beforeAnswer: shared && (() => workers?.sendModels()),
    routes,
    otherRoutes: others,
    authenticator: governance.authenticator,
    sessions: people.sessionPrincipals,
    baseUrl: () => baseUrl,
    openRequests,
    limits: options.httpLimits ?? {},
    trustedProxies: trustedProxies(config.trustedProxies),
    locality,
    isFirstKey: ({ keys: [key, ...behind], tokenExpiresAt, person, appId }) =>
      key.id === ownerKeyId && behind.length === 0 && tokenExpiresAt === undefined && !person && appId === null,
    addressThrottle: governance.addressThrottle,
    publicUrl: config.publicUrl,
    isRefusing: () => refusing,
    corsOrigins: () => sources.config.cors.origins,
    ...{ log, clock, observer, tracer },
    requestLog: () => sources.config.logs,
  });
  opened.add(server);
  const port = shared?.port ?? server.port;
  const url = `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`;
  baseUrl = `${config.publicUrl ?? url}/v1`;

  engine.start();
  routing.commands.start();
  network.start();
  // The key is shown once, so it is created last, when nothing can prevent showing it.
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
  if (config.mode === "development" && config.publicUrl === undefined) ownerKeyId = firstKey.record.id;
  keepAddress(config.dataDir, baseUrl);
  if (shared) {
    // The code for workers is loaded only if there are workers.
    const { Workers } = await import("./workers.ts");
    workers = opened.add(
      new Workers({
        ...{ config, ...shared, baseUrl, heartbeatMs, version, instanceId: replicas.id, governance, routing, log },
        ...{ openRequests, quotaWatch: notices.quotaWatch },
        errorWatch: notices.errorWatch,
        tookRequest: observation.tookRequest,
        passLines: options.passLines ?? ((lines) => void process.stdout.write(lines)),
      }),
    );
    await workers.start();
  }
  const setupLink = await people.setupLink();
  await waitBriefly(db);
  void governance.secretRotation.report();

  const findLocal = async () => {
    if (!config.discoverLocal) return [];
    const found = await findLocalServers(options.localServers ?? knownLocalServers, port);
    if (config.mode === "development" && sources.addLocal(found)) configure();
    return found;
  };
  const localServers = findLocal();
  const policiesWithoutEffect = new PoliciesWithoutEffect({
    catalog,
    guardrails: () => sources.config.guardrails,
    log,
  });
  const refresh = async () => {
    await catalog.refresh();
    policiesWithoutEffect.report();
  };
  void localServers.then(refresh);
  // In production found servers are only logged, once, and not served.
  const again = config.mode === "development" ? findLocal : async () => {};
  const poller = setInterval(() => void again().then(refresh), pollMs);
  opened.onClose(() => clearInterval(poller));

  return {
    url,
    port,
    baseUrl,
    firstKey,
    catalog,
    engine,
    commands: routing.commands,
    capacity,
    governance,
    people,
    personConnections: toolParts.personConnections,
    replicas,
    network,
    notices,
    ownCalls,
    tools,
    workers,
    sweepFiles: () => files.fileSweep.sweep(),
    setupLink,
    localServers,
    requests: () => ({ ended: answered(), open: server.pendingRequests }),
    redact: (text) => sources.known().reduce((safe, { engine: one }) => one.redact(safe), text),
    async reload(changed, needRestart = []) {
      await features.prepare(changed);
      sources.config = changed;
      fileText = changed.text;
      bufferedBytes.maxBytes = changed.limits.heldBytes;
      governance.reconfigure(changed);
      workers?.configure(changed);
      configure();
      // Workers learn of guardrails before they serve further requests.
      workers?.sendModels();
      network.reconfigured();
      // Connections to changed or removed MCP servers end at once, and subscribers are notified.
      toolParts.mcpServers.all();
      await refresh();
      capacity.regroup();
      health.lastReload = { at: clock.nowSeconds(), result: "ok", error: null, needs_restart: [...needRestart] };
    },
    reloadRefused(why) {
      health.lastReload = { at: clock.nowSeconds(), result: "refused", error: why, needs_restart: [] };
    },
    async close(drainMs = 0, lameDuckMs = 0) {
      draining = true;
      server.leave();
      workers?.leave();
      if (lameDuckMs > 0) {
        await Bun.sleep(lameDuckMs);
        refusing = true;
        workers?.turnAway();
        // Pause before the port is closed, so that connections that are being opened still get an answer.
        await Bun.sleep(refusingMs);
      }
      // Requests of workers are answered until the workers have ended. Other replicas continue the batches immediately.
      void batches.batchRunner.close();
      const ended = workers?.stop(drainMs);
      const served = ended ? ended.then(() => server.stop()) : server.stop();
      const drained = Promise.all([served, network.drain(), backgroundRuns.idle()]);
      await Promise.race([drained, Bun.sleep(drainMs)]);
      // Remaining clients are notified and get a moment to receive the notification.
      stopping.begin();
      await Promise.race([drained, Bun.sleep(Math.min(drainMs, farewellMs))]);
      await ended;
      await opened.close(log);
    },
  };
}

/** Opens what this process and its workers share. Throws the system's error if the port is in use. */
function openShared({ host, port, dataDir }: Config, opened: Opened): { directory: string; port: number } {
  const free = freePort(host, port);
  const { path } = opened.add(socketDirectory(dataDir));
  return { directory: path, port: free };
}

/** Updates only the address in credentials.json, because its key is stored nowhere else. */
function keepAddress(dataDir: string, baseUrl: string): void {
  const existing = readCredentials(dataDir);
  if (existing && existing.base_url !== baseUrl) writeCredentials(dataDir, { ...existing, base_url: baseUrl });
}
