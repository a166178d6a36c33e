// The composition root: the only file that knows all adapters. A test starts it on port 0 with a temporary directory.
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { type Config, defaultEnvironments, type ReloadableConfig } from "./config.ts";
import { environments } from "./domain/api-key.ts";
import { type Clock, systemClock } from "./domain/clock.ts";
import type { Log } from "./domain/log.ts";
import { installedEngine } from "./engines/llama/engine-backends.ts";
import { LlamaEngine, type LlamaModel } from "./engines/llama/llama-engine.ts";
import { listModels, modelIdFrom } from "./engines/llama/model-store.ts";
import { type FoundServer, findLocalServers, knownLocalServers, type LocalServer } from "./engines/local-servers.ts";
import { UpstreamEngine } from "./engines/upstream-engine.ts";
import { trustedProxies } from "./http/client-address.ts";
import { createRoutes } from "./http/routes.ts";
import { startHttpServer } from "./http/server.ts";
import { Catalog, type CatalogSource } from "./inference/catalog.ts";
import { Router } from "./inference/route.ts";
import { Authenticator } from "./policy/authenticate.ts";
import { ensureFirstKey, type FirstKey } from "./policy/first-key.ts";
import { readCredentials, writeCredentials } from "./storage/credentials-file.ts";
import { openDatabase } from "./storage/database.ts";
import { SqlKeyStore } from "./storage/key-store.ts";
import { deriveKey, loadSecret } from "./storage/secret-file.ts";
import { SqlUsageStore } from "./storage/usage-store.ts";

export interface ServeOptions {
  log: Log;
  clock?: Clock;
  /** Where to look for model servers on this machine. */
  localServers?: readonly LocalServer[];
  /** Silence of an engine after which a stream gets a comment line. */
  heartbeatMs?: number;
  /** How often engines are asked for their models. */
  pollMs?: number;
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
  /** Model servers found on this machine at start; resolves once the look is done. */
  localServers: Promise<readonly FoundServer[]>;
  /** Takes over a changed file's part that can change while running. */
  reload(config: ReloadableConfig): Promise<void>;
  /** Refuses new requests, lets open ones end for `drainMs`, then closes everything. */
  close(drainMs?: number): Promise<void>;
}

const defaultPollMs = 30_000;
const defaultHeartbeatMs = 10_000;
const demoModel: LlamaModel = {
  id: "tiny-demo",
  path: join(import.meta.dir, "..", "models", "tiny-demo", "tiny-demo.gguf"),
  ownedBy: "headrace",
  environments,
  capabilities: { chat: true, completion: true, embeddings: true },
  context: 1024,
  eager: true,
};

export async function serve(config: Config, options: ServeOptions): Promise<RunningServer> {
  const { log, clock = systemClock, heartbeatMs = defaultHeartbeatMs, pollMs = defaultPollMs } = options;
  prepareDirectory(config.dataDir);
  const db = await openDatabase(join(config.dataDir, "headrace.db"));
  const keys = new SqlKeyStore(db);
  const usage = new SqlUsageStore(db, log);
  const configuredSecret = config.secretHex === undefined ? undefined : Buffer.from(config.secretHex, "hex");
  const pepper = deriveKey(loadSecret(config.dataDir, configuredSecret), "api-key-pepper-v1");
  const accountId = await keys.ensureFirstAccount(clock.nowSeconds());
  const environment = config.mode === "development" ? "dev" : "live";
  const firstKey = await ensureFirstKey(keys, { accountId, environment, pepper, clock });

  const catalog = new Catalog({ log, clock });
  const gpuEngine = await installedEngine(config.dataDir);
  const engine = new LlamaEngine({
    models: () => builtInModels(config, log),
    context: config.engine.context,
    parallel: config.engine.parallel,
    threads: config.engine.threads,
    gpu: gpuEngine && gpuEngine.gpu !== false ? "auto" : false,
    libraryPath: gpuEngine?.libraryPath,
    log,
    onReady: () => void catalog.refresh(),
  });
  const sources = new Sources(engine);
  let current: ReloadableConfig = config;
  const configure = () => catalog.configure(sources.of(current), declaredModels(current));
  configure();
  await engine.start();

  let draining = false;
  const routes = createRoutes({
    catalog,
    router: new Router(clock),
    usage,
    clock,
    heartbeatMs,
    limits: () => current.limits,
    version: packageJson.version,
    async readiness() {
      const database = await db`SELECT 1`.then(
        () => "ok" as const,
        () => "failed" as const,
      );
      return { ready: !draining && database === "ok", checks: { database, server: draining ? "draining" : "ok" } };
    },
  });
  const server = startHttpServer({
    hostname: config.host,
    port: config.port,
    routes,
    authenticator: new Authenticator({ keys, pepper, mode: config.mode, clock }),
    trustedProxies: trustedProxies(config.trustedProxies),
    corsOrigins: () => current.cors.origins,
    log,
    clock,
  });
  const port = server.port ?? config.port;
  const shownHost = config.host.includes(":") ? `[${config.host}]` : config.host;
  const url = `http://${shownHost}:${port}`;
  const baseUrl = `${config.publicUrl ?? url}/v1`;
  keepCredentials(config.dataDir, baseUrl, firstKey);

  const look = async () => {
    if (!config.discoverLocal) return [];
    const found = await findLocalServers(options.localServers ?? knownLocalServers, port);
    if (config.mode === "development" && sources.setLocal(found, current)) configure();
    return found;
  };
  const localServers = look();
  const refresh = async () => {
    await look();
    await catalog.refresh();
  };
  void localServers.then(() => catalog.refresh());
  const poller = setInterval(() => void refresh(), pollMs);

  return {
    url,
    port,
    baseUrl,
    firstKey,
    catalog,
    engine,
    localServers,
    async reload(changed) {
      current = changed;
      configure();
      await catalog.refresh();
    },
    async close(drainMs = 0) {
      draining = true;
      clearInterval(poller);
      await Promise.race([server.stop(), Bun.sleep(drainMs)]);
      await server.stop(true);
      await engine.close();
      await usage.flush();
      await db.close();
    },
  };
}

/** For its owner only: keys' digests, usage and the secret are in it. */
function prepareDirectory(dataDir: string): void {
  if (existsSync(dataDir)) return;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  chmodSync(dataDir, 0o700);
}

/** The first start writes the file; later ones only correct the address in it, for the key is known to nobody else. */
function keepCredentials(dataDir: string, baseUrl: string, firstKey: FirstKey): void {
  if (firstKey.key !== undefined) {
    writeCredentials(dataDir, { base_url: baseUrl, api_key: firstKey.key });
    return;
  }
  const existing = readCredentials(dataDir);
  if (existing && existing.base_url !== baseUrl) writeCredentials(dataDir, { ...existing, base_url: baseUrl });
}

async function builtInModels(config: Config, log: Log): Promise<LlamaModel[]> {
  const pulled = await listModels(config.dataDir, (file, reason) =>
    log.warn("model_skipped", { file, detail: reason }),
  );
  return [
    ...(config.engine.demo ? [demoModel] : []),
    ...config.engine.models.map((path) => ({
      id: modelIdFrom(basename(path).replace(/\.gguf$/i, "")),
      path,
      ownedBy: "local",
      eager: true,
    })),
    ...pulled.map((manifest) => ({
      id: manifest.id,
      path: manifest.file,
      ownedBy: "local",
      capabilities: manifest.capabilities,
      ...(manifest.context === undefined ? {} : { context: manifest.context }),
      eager: false,
    })),
  ];
}

/** Keeps the engine object of an upstream while its settings stay, so that what is known of it survives a reload. */
class Sources {
  readonly #builtIn: CatalogSource;
  #upstreams = new Map<string, CatalogSource>();
  #local: readonly FoundServer[] = [];

  constructor(engine: LlamaEngine) {
    this.#builtIn = { engine, discover: true, environments: defaultEnvironments, configured: false };
  }

  /** Whether something changed. A server that is gone for now stays: it may only be restarting. */
  setLocal(found: readonly FoundServer[], config: ReloadableConfig): boolean {
    const added = found.filter(
      (server) =>
        server.models !== undefined &&
        !this.#local.some((known) => known.url === server.url) &&
        !config.upstreams.some((upstream) => samePlace(upstream.url, server.url) || upstream.name === server.name),
    );
    this.#local = [...this.#local, ...added];
    return added.length > 0;
  }

  of(config: ReloadableConfig): CatalogSource[] {
    const wanted = [
      ...config.upstreams.map((upstream) => ({ ...upstream, configured: true })),
      ...this.#local
        .filter((server) => !config.upstreams.some((upstream) => samePlace(upstream.url, server.url)))
        .map(({ name, url }) => {
          return {
            name,
            url,
            apiKey: undefined,
            discover: true,
            timeoutSeconds: 600,
            idleSeconds: 900,
            configured: false,
          };
        }),
    ];
    const kept = new Map<string, CatalogSource>();
    for (const { discover, configured, ...settings } of wanted) {
      const identity = JSON.stringify(settings);
      const { name, url, apiKey, timeoutSeconds, idleSeconds } = settings;
      const engine =
        this.#upstreams.get(identity)?.engine ??
        new UpstreamEngine({
          name,
          url,
          apiKey,
          firstByteTimeoutMs: timeoutSeconds * 1000,
          idleTimeoutMs: idleSeconds * 1000,
        });
      kept.set(identity, { engine, discover, environments: defaultEnvironments, configured });
    }
    this.#upstreams = kept;
    return [this.#builtIn, ...kept.values()];
  }
}

function samePlace(a: string, b: string): boolean {
  const place = (url: string) => {
    const { hostname, port } = new URL(url);
    return `${hostname === "localhost" ? "127.0.0.1" : hostname}:${port}`;
  };
  return place(a) === place(b);
}

function declaredModels(config: ReloadableConfig) {
  return config.models.map((model) => ({
    ...model,
    deployments: model.deployments.map(({ upstream, model: id, weight }) => ({ engine: upstream, model: id, weight })),
  }));
}
