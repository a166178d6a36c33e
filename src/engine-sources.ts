// Which engines the catalog draws on: the built-in one, those of the configuration, and servers found on this machine.
import type { ReloadableConfig } from "./config.ts";
import { defaultEnvironments } from "./domain/api-key.ts";
import type { HttpClientKind } from "./engines/http-engine.ts";
import type { LlamaEngine } from "./engines/llama/llama-engine.ts";
import type { FoundServer } from "./engines/local-servers.ts";
import { UpstreamEngine } from "./engines/upstream-engine.ts";
import type { CatalogSource, DeclaredModel } from "./inference/catalog.ts";

/** For servers that nobody configured; the defaults of the configuration file. */
const localDefaults = { timeoutSeconds: 600, idleSeconds: 900, maxConcurrency: undefined, httpClient: "own" } as const;

/** Keeps the engine object of an upstream while its settings stay, so that what is known of it survives a reload. */
export class EngineSources {
  /** A reload replaces it; `list` and `declaredModels` follow. */
  config: ReloadableConfig;
  readonly #builtIn: CatalogSource;
  #upstreams = new Map<string, CatalogSource>();
  #local: readonly FoundServer[] = [];

  constructor(engine: LlamaEngine, config: ReloadableConfig) {
    this.config = config;
    this.#builtIn = { engine, discover: true, environments: defaultEnvironments, configured: false };
  }

  /** Whether something is new. A server that is gone for now stays: it may only be restarting. */
  addLocal(found: readonly FoundServer[]): boolean {
    const added = found.filter(
      (server) => server.models !== undefined && !this.#local.some((known) => known.url === server.url),
    );
    this.#local = [...this.#local, ...added];
    return added.length > 0;
  }

  list(): CatalogSource[] {
    const { upstreams } = this.config;
    const local = this.#local.filter(
      ({ name, url }) => !upstreams.some((upstream) => samePlace(upstream.url, url) || upstream.name === name),
    );
    const wanted = [
      ...upstreams.map((upstream) => ({ ...upstream, configured: true })),
      ...local.map(({ name, url }) => {
        return { name, url, apiKey: undefined, discover: true, ...localDefaults, configured: false };
      }),
    ];
    const kept = new Map<string, CatalogSource>();
    for (const { discover, configured, ...settings } of wanted) {
      const identity = JSON.stringify(settings);
      const engine = this.#upstreams.get(identity)?.engine ?? createUpstream(settings);
      kept.set(identity, { engine, discover, environments: defaultEnvironments, configured });
    }
    this.#upstreams = kept;
    return [this.#builtIn, ...kept.values()];
  }

  declaredModels(): DeclaredModel[] {
    return this.config.models.map((model) => ({
      ...model,
      deployments: model.deployments.map(({ upstream, model: id, weight }) => ({
        engine: upstream,
        model: id,
        weight,
      })),
    }));
  }
}

interface UpstreamSettings {
  name: string;
  url: string;
  apiKey: string | undefined;
  timeoutSeconds: number;
  idleSeconds: number;
  maxConcurrency: number | undefined;
  httpClient: HttpClientKind;
}

function createUpstream({
  name,
  url,
  apiKey,
  timeoutSeconds,
  idleSeconds,
  maxConcurrency,
  httpClient,
}: UpstreamSettings): UpstreamEngine {
  return new UpstreamEngine({
    name,
    url,
    apiKey,
    firstByteTimeoutMs: timeoutSeconds * 1000,
    idleTimeoutMs: idleSeconds * 1000,
    maxConcurrency,
    httpClient,
  });
}

function samePlace(a: string, b: string): boolean {
  const place = (url: string) => {
    const { hostname, port } = new URL(url);
    return `${hostname === "localhost" ? "127.0.0.1" : hostname}:${port}`;
  };
  return place(a) === place(b);
}
