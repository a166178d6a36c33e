// The engines of the catalog: the built-in engine, engines from the configuration and the database, and servers found
// on this machine.

import type { ReloadableConfig } from "../config/config.ts";
import { defaultEnvironments } from "../domain/api-key.ts";
import type { Engine } from "../domain/models/engine.ts";
import type { StoredModel } from "../domain/models/model-entry.ts";
import type { NodeRecord } from "../domain/models/node.ts";
import { type UpstreamSettings, type UpstreamSource, upstreamDefaults } from "../domain/models/upstream.ts";
import { speechOf, type UpstreamSpeech, usualSpeech } from "../domain/models/upstream-speech.ts";
import type { CommandEngine } from "../engines/commands/command-engine.ts";
import type { HttpClientKind } from "../engines/http-engine.ts";
import type { LlamaEngine } from "../engines/llama/llama-engine.ts";
import type { FoundServer } from "../engines/local-servers.ts";
import { UpstreamEngine } from "../engines/upstream-engine.ts";
import type { CatalogSource, DeclaredModel } from "../inference/models/catalog.ts";
import type { FileModel, ModelSources } from "../inference/models/model-view.ts";
import type { KnownUpstream, OpenedUpstream, UpstreamSources } from "../inference/models/upstream-view.ts";
import { listedPrice } from "../prices/price-list.ts";

/** Default settings of upstreams that are not in the configuration file. */
const unnamed = {
  ...upstreamDefaults,
  ...usualSpeech,
  ...{ discover: true, local: false, environments: defaultEnvironments, maxConcurrency: null },
};

/** The connection settings of engines without a configured URL: the built-in engine, commands and nodes. */
const nowhere = { url: null, timeoutSeconds: null, idleSeconds: null, hasApiKey: false };

/** Maximum replaced engines that stay counted, because they may still answer earlier requests. */
const maxFormer = 50;

/** The settings of an HTTP server's engine as plain data, including the API key. */
export interface DirectEngine extends Connection {
  readonly local: boolean;
}

/**
 * Keeps the engine object of an upstream while its settings stay the same, so that its learned state survives a reload.
 */
export class EngineSources implements UpstreamSources, ModelSources {
  /** The current configuration, which a reload replaces. `list` and `declaredModels` use it. */
  config: ReloadableConfig;
  /** Upstreams of the database, replaced after each change. */
  stored: readonly OpenedUpstream[] = [];
  /** Models of the database, replaced after each change. */
  storedModels: readonly StoredModel[] = [];
  /** Returns the current nodes. */
  nodes: () => readonly { record: NodeRecord; engine: Engine }[] = () => [];
  /** The built-in engine and commands, which stay the same while the server runs. */
  readonly #own: readonly KnownUpstream[];
  #known: readonly KnownUpstream[] = [];
  #engines = new Map<string, UpstreamEngine>();
  #former: readonly Engine[] = [];
  #direct: ReadonlyMap<Engine, DirectEngine> = new Map();
  #local: readonly FoundServer[] = [];

  constructor(engine: LlamaEngine, commands: readonly CommandEngine[], config: ReloadableConfig) {
    this.config = config;
    // The built-in engine and commands always run their models on this machine, so they count as local.
    const here = { ...unnamed, ...nowhere, local: true };
    this.#own = [
      { ...here, name: engine.name, source: "built-in", engine },
      ...commands.map(
        (command): KnownUpstream => ({ ...here, ...command.speech, ...limitsOf(command), engine: command }),
      ),
    ];
  }

  /** Adds found servers and returns whether any is new. An unreachable server stays, because it may be restarting. */
  addLocal(found: readonly FoundServer[]): boolean {
    const added = found.filter(
      (server) => server.models !== undefined && !this.#local.some((known) => known.url === server.url),
    );
    this.#local = [...this.#local, ...added];
    return added.length > 0;
  }

  /** Computes the current sources. */
  list(): CatalogSource[] {
    const kept = new Map<string, UpstreamEngine>();
    const direct = new Map<Engine, DirectEngine>();
    const replaced = new Map<Engine, Engine>();
    const upstreams = this.#wanted().map((wanted): KnownUpstream => {
      const identity = identityOf(wanted);
      const known = this.#engines.get(identity);
      const engine = known ?? createUpstream(wanted);
      kept.set(identity, engine);
      if (wanted.maxConcurrency === null) direct.set(engine, directOf(wanted));
      const before = this.#known.find(({ name, url }) => name === wanted.name && url === wanted.url);
      if (!known && before) replaced.set(engine, before.engine);
      const { apiKey, httpClient: _, ...shown } = wanted;
      return { ...shown, engine, hasApiKey: apiKey !== undefined };
    });
    this.#engines = kept;
    this.#direct = direct;
    this.#replace([...this.#own, ...upstreams, ...this.#ofNodes(upstreams)]);
    return this.#known.map(({ engine, source, discover, local, environments }) => {
      const configured = source !== "built-in" && source !== "found";
      const what = { configured, isNode: source === "node", local };
      return { engine, discover, environments, ...what, replaces: replaced.get(engine) };
    });
  }

  #replace(known: readonly KnownUpstream[]): void {
    const kept = new Set(known.map(({ engine }) => engine));
    const former = this.#known.map(({ engine }) => engine).filter((engine) => !kept.has(engine));
    if (former.length > 0) this.#former = [...this.#former, ...former].slice(-maxFormer);
    this.#known = known;
  }

  /**
   * Returns nodes whose name no upstream has. An upstream of that name may have been added to the file after the node
   * joined.
   */
  #ofNodes(upstreams: readonly KnownUpstream[]): KnownUpstream[] {
    const taken = new Set([...this.#own, ...upstreams].map(({ name }) => name));
    return this.nodes()
      .filter(({ record }) => !taken.has(record.name))
      .map(({ record, engine }) => {
        const { name, environments, maxConcurrency, local } = record;
        return { ...unnamed, ...nowhere, name, environments, maxConcurrency, local, source: "node", engine };
      });
  }

  /** Returns HTTP servers without a concurrency limit, which workers may ask themselves. */
  direct(): { engine: Engine; connection: DirectEngine }[] {
    return [...this.#direct].map(([engine, connection]) => ({ engine, connection }));
  }

  known(): readonly KnownUpstream[] {
    return this.#known;
  }

  former(name: string): readonly Engine[] {
    return this.#former.filter((engine) => engine.name === name);
  }

  probe(url: string, apiKey: string | undefined, speech: UpstreamSpeech): Engine {
    return createUpstream({ ...unnamed, ...speech, name: url, url, apiKey, httpClient: "own" });
  }

  fileModels(): FileModel[] {
    return this.config.models.map((model) => ({
      ...model,
      ownedBy: model.ownedBy ?? null,
      capabilities: model.capabilities ?? null,
      context: model.context ?? null,
      price: model.price ?? null,
      priceOf: model.priceOf ?? null,
      policies: model.policies ?? null,
    }));
  }

  guardrails(): ReloadableConfig["guardrails"] {
    return this.config.guardrails;
  }

  /** Returns the declared models. The configuration file takes precedence over the database. */
  declaredModels(): DeclaredModel[] {
    const ofFile = this.fileModels();
    const named = new Set(ofFile.map(({ id }) => id));
    return [...ofFile, ...this.storedModels.filter(({ id }) => !named.has(id))].map((model) => ({
      id: model.id,
      ownedBy: model.ownedBy ?? undefined,
      capabilities: model.capabilities ?? undefined,
      context: model.context ?? undefined,
      environments: model.environments ?? undefined,
      price: model.price ?? (model.priceOf === null ? undefined : listedPrice(model.priceOf)),
      deployments: model.deployments.map(({ upstream, ...deployment }) => ({ engine: upstream, ...deployment })),
      fallbacks: model.fallbacks,
      aliases: model.aliases,
      policies: model.policies ?? undefined,
    }));
  }

  /**
   * Returns the wanted upstreams. The configuration file takes precedence over the database; found servers with the
   * name or address of either are left out.
   */
  #wanted(): Wanted[] {
    // A file that gives an upstream the name of a command is refused, but the database may hold such an upstream
    // already.
    const own = new Set(this.#own.map(({ name }) => name));
    const ofFile = this.config.upstreams.map(
      ({ maxConcurrency = null, ...upstream }): Wanted => ({
        ...{ ...upstream, ...speechOf(upstream), maxConcurrency, environments: defaultEnvironments, source: "file" },
      }),
    );
    const stored = this.stored
      .filter(({ name }) => !own.has(name) && !ofFile.some((upstream) => upstream.name === name))
      .map((upstream): Wanted => ({ ...upstream, httpClient: "own", source: "database" }));
    const named = [...ofFile, ...stored];
    const nodes = new Set(this.nodes().map(({ record }) => record.name));
    const found = this.#local
      .filter(
        ({ name, url }) =>
          !own.has(name) && !nodes.has(name) && !named.some((one) => one.name === name || isSameAddress(one.url, url)),
      )
      .map(
        ({ name, url }): Wanted => ({
          ...unnamed,
          ...{ name, url, apiKey: undefined, httpClient: "own", source: "found" },
        }),
      );
    return [...named, ...found];
  }
}

function limitsOf({ name, maxConcurrency }: CommandEngine) {
  return { name, maxConcurrency: maxConcurrency ?? null, source: "command" } as const;
}

interface Wanted extends Connection {
  source: Exclude<UpstreamSource, "built-in" | "command" | "node">;
  discover: boolean;
  local: boolean;
  environments: UpstreamSettings["environments"];
}

/** The settings that identify an engine. If one changes, the engine is replaced. */
export interface Connection
  extends Pick<UpstreamSettings, "name" | "url" | "timeoutSeconds" | "idleSeconds" | "maxConcurrency">,
    UpstreamSpeech {
  apiKey: string | undefined;
  httpClient: HttpClientKind;
  local: boolean;
}

function directOf({
  name,
  url,
  apiKey,
  httpClient,
  timeoutSeconds,
  idleSeconds,
  local,
  ...speech
}: Wanted): DirectEngine {
  return {
    name,
    url,
    apiKey,
    httpClient,
    timeoutSeconds,
    idleSeconds,
    maxConcurrency: null,
    local,
    ...speechOf(speech),
  };
}

/** Returns a text of the values that identify an engine. */
export function identityOf({ name, url, apiKey, httpClient, ...connection }: Connection) {
  const { timeoutSeconds, idleSeconds, maxConcurrency } = connection;
  const { api, apis, keyHeader, query, cacheSalt, priority, identifiers, local } = connection;
  return JSON.stringify([
    ...[name, url, apiKey ?? null, timeoutSeconds, idleSeconds, maxConcurrency, httpClient],
    ...[api, apis, keyHeader, Object.entries(query), cacheSalt, priority, identifiers, local],
  ]);
}

/** Makes an engine for a server. */
export function createUpstream({ name, url, apiKey, httpClient, ...connection }: Connection): UpstreamEngine {
  return new UpstreamEngine({
    ...{ name, url, apiKey, httpClient, speech: speechOf(connection), local: connection.local },
    firstByteTimeoutMs: connection.timeoutSeconds * 1000,
    idleTimeoutMs: connection.idleSeconds * 1000,
    maxConcurrency: connection.maxConcurrency ?? undefined,
  });
}

function isSameAddress(a: string, b: string): boolean {
  const addressOf = (url: string) => {
    const { hostname, port } = new URL(url);
    return `${hostname === "localhost" ? "127.0.0.1" : hostname}:${port}`;
  };
  return addressOf(a) === addressOf(b);
}
