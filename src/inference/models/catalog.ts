// The catalog of available models: declared models, merged with the models that engines report.

import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { defaultEnvironments, type Environment } from "../../domain/api-key.ts";
import { type Capabilities, capabilityNames } from "../../domain/models/capabilities.ts";
import type { Engine, EngineModel } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { ModelPolicies } from "../../domain/models/policies/model-policies.ts";
import type { Price } from "../../domain/models/price.ts";
import { Aliases } from "./aliases.ts";
import { describeFault, pollTimeoutMs } from "./engine-fault.ts";

/** An engine, and the rules by which its models enter the catalog. */
export interface CatalogSource {
  engine: Engine;
  /** True if the engine's models are offered under its own ids even if they are not declared. */
  discover: boolean;
  /** Environments that may use the models found at the engine. */
  environments: readonly Environment[];
  /**
   * True if the engine is configured or approved. A warning is then logged while it cannot be reached. Other engines
   * are discovered or built in.
   */
  configured: boolean;
  /** True for a machine that joined as a node. */
  isNode?: boolean;
  /** True if requests that must stay local may go to the engine. Default: false. */
  local?: boolean;
  /**
   * The earlier engine object for the same server, if its settings have changed. Its model list is used until the new
   * engine was asked.
   */
  replaces?: Engine | undefined;
}

/** A model that the configuration file or an operator declares. */
export interface DeclaredModel {
  id: string;
  ownedBy: string | undefined;
  capabilities: Capabilities | undefined;
  context: number | undefined;
  environments: readonly Environment[] | undefined;
  price: Price | undefined;
  /** Deployments of the model. If empty, the model is served by every engine that reports its id. */
  deployments: readonly { engine: string; model: string; weight: number }[];
  /** Public ids of its fallback models, best first. */
  fallbacks?: readonly string[] | undefined;
  /** Other names that requests may use: see `aliasPattern`. */
  aliases?: readonly string[] | undefined;
  /** Absent if the model has no policies. */
  policies?: ModelPolicies | undefined;
}

/** The result of the last poll of an engine. */
export interface EngineStatus {
  /** Number of models in the last list. Undefined if the engine was never reached. */
  models: number | undefined;
  /**
   * Reason why the engine cannot be reached, for operators. Undefined if it can be reached, or if it was not asked yet.
   */
  error: string | undefined;
}

/** Is notified of the result of each poll. */
export interface EngineWatcher {
  reached(engine: Engine): void;
  unreachable(engine: Engine): void;
  /** Called if the engine did not list its models in time. The poll began at `sinceMs` (monotonic milliseconds). */
  silent(engine: Engine, sinceMs: number): void;
}

export class Catalog {
  /** Notified of each engine's availability. Undefined if there is no watcher. */
  watcher: EngineWatcher | undefined;
  /** Called when the available models may have changed. */
  onChange: (() => void) | undefined;
  readonly #log: Log;
  readonly #clock: Clock;
  #sources: readonly CatalogSource[] = [];
  #declared: readonly DeclaredModel[] = [];
  /**
   * The last model list of each engine. An unreachable engine keeps its list, so that a restart of it does not change
   * the models.
   */
  #reported = new Map<Engine, readonly EngineModel[]>();
  /** The ids of the models in each list of `#reported`, computed when first needed. */
  readonly #listed = new WeakMap<readonly EngineModel[], ReadonlySet<string>>();
  /** Error texts of the engines that cannot be reached. */
  #faults = new Map<Engine, string>();
  #firstSeen = new Map<string, number>();
  #models: ReadonlyMap<string, Model> = new Map();
  #aliases = new Aliases([]);
  /** Aliases without effect that were already logged, as JSON. */
  #warnedOf = new Set<string>();
  /**
   * Models that were left out at a node, and whose exclusion was already logged. Pairs of node and model id, as JSON.
   */
  #leftOut = new Set<string>();
  /** Resolves when every engine was asked for its models once. */
  readonly #firstPoll = Promise.withResolvers<void>();
  #isPolled = false;

  constructor(options: { log: Log; clock: Clock }) {
    this.#log = options.log;
    this.#clock = options.clock;
  }

  /** Replaces sources and declarations in one step. Engines that remain keep their model lists. */
  configure(sources: readonly CatalogSource[], declared: readonly DeclaredModel[]): void {
    this.#sources = sources;
    this.#declared = declared;
    this.#aliases = new Aliases(declared);
    for (const { engine, replaces } of sources) {
      const models = replaces && this.#reported.get(replaces);
      if (models && !this.#reported.has(engine)) this.#reported.set(engine, models);
    }
    const kept = new Set(sources.map((source) => source.engine));
    for (const known of [this.#reported, this.#faults]) {
      for (const engine of known.keys()) if (!kept.has(engine)) known.delete(engine);
    }
    this.#rebuild();
  }

  /**
   * Returns the model with this id or alias. Until every engine was asked, aliases are ignored, because a model may
   * turn out to have the alias as its id.
   */
  find(name: string): Model | undefined {
    return this.#models.get(name) ?? (this.#isPolled ? this.#aliased(name) : undefined);
  }

  /** Returns the model that has this id. Aliases are not looked up. */
  get(id: string): Model | undefined {
    return this.#models.get(id);
  }

  #aliased(name: string): Model | undefined {
    const id = this.#aliases.idOf(name);
    return id === undefined ? undefined : this.#models.get(id);
  }

  list(): Model[] {
    return [...this.#models.values()];
  }

  /** True if every engine was asked for its models at least once. */
  get complete(): boolean {
    return this.#isPolled;
  }

  /**
   * Resolves once every engine was asked for its models. Directly after the start, a model may be unknown only because
   * its engine has not been asked yet.
   */
  async whenComplete(): Promise<void> {
    if (!this.#isPolled) await this.#firstPoll.promise;
  }

  /** Asks every engine for its models. Never rejects: an engine that fails keeps its last list. */
  async refresh(): Promise<void> {
    await Promise.all(this.#sources.map((source) => this.#poll(source)));
    this.#rebuild();
    this.#isPolled = true;
    this.#firstPoll.resolve();
  }

  status(engine: Engine): EngineStatus {
    return { models: this.#reported.get(engine)?.length, error: this.#faults.get(engine) };
  }

  /** Reports whether the last list of the engine contained the model. Returns null if the engine was never reached. */
  lists(engine: Engine, model: string): boolean | null {
    const reported = this.#reported.get(engine);
    if (!reported) return null;
    let ids = this.#listed.get(reported);
    if (!ids) {
      ids = new Set(reported.map(({ id }) => id));
      this.#listed.set(reported, ids);
    }
    return ids.has(model);
  }

  /** Reports whether an operator configured or added the engine. False if it is built in or was discovered. */
  isConfigured(engine: Engine): boolean {
    return this.#sources.some((source) => source.engine === engine && source.configured);
  }

  /** Reports whether the engine is a node, which is a machine that joined this gateway. */
  isNode(engine: Engine): boolean {
    return this.#sources.some((source) => source.engine === engine && source.isNode);
  }

  /** Asks these engines for their models. Takes a few seconds at most. */
  async refreshSource(...engines: readonly Engine[]): Promise<void> {
    const asked = new Set(engines);
    await Promise.all(this.#sources.filter((source) => asked.has(source.engine)).map((source) => this.#poll(source)));
    this.#rebuild();
  }

  async #poll(source: CatalogSource): Promise<void> {
    const { engine } = source;
    const sinceMs = this.#clock.monotonicMs();
    try {
      const models = await engine.models(AbortSignal.timeout(pollTimeoutMs));
      if (!this.#has(engine)) return;
      this.watcher?.reached(engine);
      const isBack = this.#faults.delete(engine) && source.configured;
      const isNew = isBack || !this.#reported.has(engine);
      this.#reported.set(engine, models);
      if (isNew) this.#log.info("upstream_reached", { upstream: engine.name, models: models.length });
    } catch (error) {
      if (!this.#has(engine)) return;
      // An engine that never listed models may still serve some, so the watcher is not notified. A slow engine may only
      // be busy, so it is reported as silent and not as unreachable.
      if (this.#reported.has(engine)) {
        if (isTimeout(error)) this.watcher?.silent(engine, sinceMs);
        else this.watcher?.unreachable(engine);
      }
      const last = engine.lastModels?.();
      if (last) this.#reported.set(engine, last);
      const detail = describeFault(engine, error);
      const isNewFault = source.configured && !this.#faults.has(engine);
      this.#faults.set(engine, detail);
      if (isNewFault) this.#log.warn("upstream_unreachable", { upstream: engine.name, detail });
    }
  }

  /** Reports whether the engine is still among the sources, which may have changed while it was asked. */
  #has(engine: Engine): boolean {
    return this.#sources.some((source) => source.engine === engine);
  }

  #rebuild(): void {
    const models = new Map<string, Model>();
    const placed = this.#declared.filter(({ deployments }) => deployments.length > 0);
    for (const declared of placed) models.set(declared.id, this.#fromDeclaration(declared));
    const declared = new Set(models.keys());
    const adding = new Map(this.#declared.map((one) => [one.id, one]));
    const leftOut = new Set<string>();
    // Configured engines come first, so that a discovered server never takes their requests.
    for (const source of [...this.#sources].sort((one, two) => rankOf(two) - rankOf(one))) {
      if (!source.discover) continue;
      for (const reported of this.#reported.get(source.engine) ?? []) {
        const known = models.get(reported.id);
        const { engine, local = false } = source;
        const deployment: Deployment = { engine, model: reported.id, weight: 1, local };
        if (!known) models.set(reported.id, this.#fromReport(reported, deployment, source));
        // Engines that list the same id serve one model together. If the model is declared with deployments, only these
        // count.
        else if (source.configured && !declared.has(reported.id) && !runsOn(known, source.engine)) {
          const [first = deployment] = known.deployments;
          const isGuest = source.isNode === true && !this.isNode(first.engine);
          if (isGuest && promisesLess(reported, { ...known, ...promisesOf(adding.get(reported.id)) })) {
            leftOut.add(JSON.stringify({ node: engine.name, model: reported.id }));
          } else models.set(reported.id, merge(known, deployment, source, isGuest ? undefined : reported));
        }
      }
    }
    for (const one of this.#declared) {
      const found = models.get(one.id);
      if (one.deployments.length === 0 && found) models.set(one.id, withDeclared(found, one));
    }
    this.#models = models;
    for (const text of leftOut) if (!this.#leftOut.has(text)) this.#log.warn("node_model_left_out", JSON.parse(text));
    this.#leftOut = leftOut;
    this.#warnOfAliases();
    this.onChange?.();
  }

  /** Logs each alias without effect once. It is logged again if it has had an effect in the meantime. */
  #warnOfAliases(): void {
    const withoutEffect = new Map(this.#aliases.withoutEffect(this.#models).map((one) => [JSON.stringify(one), one]));
    for (const [text, one] of withoutEffect) if (!this.#warnedOf.has(text)) this.#log.warn("alias_in_vain", { ...one });
    this.#warnedOf = new Set(withoutEffect.keys());
  }

  #fromDeclaration(declared: DeclaredModel): Model {
    const deployments: Deployment[] = [];
    let environments = declared.environments ?? defaultEnvironments;
    let reported: EngineModel | undefined;
    const ends: (number | undefined)[] = [];
    for (const { engine: name, model, weight } of declared.deployments) {
      const source = this.#sources.find((one) => one.engine.name === name);
      if (!source) continue;
      const { engine, local = false } = source;
      deployments.push({ engine, model, weight, local });
      // The models of a node may only be used in the environments that were set when the node joined.
      if (source.isNode) environments = environments.filter((one) => source.environments.includes(one));
      const found = this.#reported.get(engine)?.find((candidate) => candidate.id === model);
      reported ??= found;
      ends.push(found?.shutdownAt);
    }
    return {
      id: declared.id,
      created: reported?.created ?? this.#seen(declared.id),
      ownedBy: declared.ownedBy ?? reported?.ownedBy ?? declared.deployments[0]?.engine ?? "headrace",
      capabilities: declared.capabilities ?? reported?.capabilities,
      context: declared.context ?? reported?.context,
      shutdownAt: lastEnd(ends),
      environments,
      price: declared.price,
      deployments,
      ...additionsOf(declared),
    };
  }

  #fromReport(reported: EngineModel, deployment: Deployment, source: CatalogSource): Model {
    return {
      id: reported.id,
      created: reported.created ?? this.#seen(reported.id),
      ownedBy: reported.ownedBy ?? source.engine.name,
      capabilities: reported.capabilities,
      context: reported.context,
      shutdownAt: reported.shutdownAt,
      environments: reported.environments ?? source.environments,
      price: undefined,
      deployments: [deployment],
    };
  }

  #seen(id: string): number {
    const seen = this.#firstSeen.get(id) ?? this.#clock.nowSeconds();
    this.#firstSeen.set(id, seen);
    return seen;
  }
}

/**
 * Adds a declaration to a model that was found at an engine. The model serves only environments that both allow,
 * because the operator of the engine may restrict it.
 */
function withDeclared(found: Model, declared: DeclaredModel): Model {
  const { environments } = declared;
  return {
    ...found,
    ownedBy: declared.ownedBy ?? found.ownedBy,
    capabilities: declared.capabilities ?? found.capabilities,
    context: declared.context ?? found.context,
    environments: found.environments.filter((name) => environments?.includes(name) ?? true),
    price: declared.price,
    ...additionsOf(declared),
  };
}

/** Returns the time when the last deployment is shut down. Returns undefined if one of them has no announced end. */
function lastEnd(ends: readonly (number | undefined)[]): number | undefined {
  const known = ends.filter((end) => end !== undefined);
  return known.length === 0 || known.length < ends.length ? undefined : Math.max(...known);
}

/** Returns only the members that are set. */
function additionsOf(declared: DeclaredModel): Pick<Model, "fallbacks" | "aliases" | "policies"> {
  const { fallbacks = [], aliases = [], policies } = declared;
  return {
    ...(fallbacks.length > 0 ? { fallbacks } : {}),
    ...(aliases.length > 0 ? { aliases } : {}),
    ...(policies ? { policies } : {}),
  };
}

/** Returns the rank of a source. Configured engines come before nodes, because a node may belong to anybody. */
function rankOf({ configured, isNode = false }: CatalogSource): number {
  return configured ? 2 - Number(isNode) : 0;
}

/** Reports whether a node offers a shorter context or fewer capabilities for the model than are already known. */
function promisesLess(reported: EngineModel, { context, capabilities }: Pick<Model, "context" | "capabilities">) {
  if (context !== undefined && reported.context !== undefined && reported.context < context) return true;
  return capabilityNames.some((name) => capabilities?.[name] && reported.capabilities?.[name] === false);
}

function promisesOf(declared: DeclaredModel | undefined): Partial<Pick<Model, "context" | "capabilities">> {
  return {
    ...(declared?.context === undefined ? {} : { context: declared.context }),
    ...(declared?.capabilities === undefined ? {} : { capabilities: declared.capabilities }),
  };
}

/**
 * Returns the model with one more deployment. A request may go to any deployment, so the new one can only narrow the
 * model's context and capabilities. Without `reported`, only the environments are narrowed.
 */
function merge(known: Model, deployment: Deployment, source: CatalogSource, reported: EngineModel | undefined): Model {
  const contexts = [known.context, reported?.context].filter((context) => context !== undefined);
  const environments = reported?.environments ?? source.environments;
  return {
    ...known,
    environments: known.environments.filter((name) => environments.includes(name)),
    capabilities: reported ? commonCapabilities(known.capabilities, reported.capabilities) : known.capabilities,
    context: contexts.length > 0 ? Math.min(...contexts) : undefined,
    shutdownAt: lastEnd([known.shutdownAt, reported?.shutdownAt]),
    deployments: [...known.deployments, deployment],
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

function runsOn(model: Model, engine: Engine): boolean {
  return model.deployments.some((deployment) => deployment.engine === engine);
}

/** Combines the capabilities of two deployments: false if one says false, true if both say true, otherwise unknown. */
function commonCapabilities(a: Capabilities | undefined, b: Capabilities | undefined): Capabilities {
  const common: Capabilities = {};
  for (const name of capabilityNames) {
    if (a?.[name] === false || b?.[name] === false) common[name] = false;
    else if (a?.[name] && b?.[name]) common[name] = true;
  }
  return common;
}
