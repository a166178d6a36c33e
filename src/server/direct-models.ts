// Decides which models a worker serves itself: those without policies whose deployments are all HTTP servers without a
// concurrency limit.
import type { Model } from "../domain/models/model.ts";
import type { Catalog, DeclaredModel } from "../inference/models/catalog.ts";
import type { Router } from "../inference/routing/route.ts";
import type { DirectEngine, EngineSources } from "./engine-sources.ts";

/** The models that workers serve, as plain data that can be sent to workers. */
export interface DirectModels {
  readonly engines: readonly DirectEngine[];
  readonly models: readonly DeclaredModel[];
  /** The ids of all other models, which no alias of a model served by a worker may replace. */
  readonly others: readonly string[];
  /** The names of drained engines. */
  readonly drained: readonly string[];
}

export interface DirectModelsDeps {
  catalog: Pick<Catalog, "list" | "get">;
  sources: Pick<EngineSources, "direct">;
  router: Pick<Router, "drained">;
}

/**
 * Lists the models that workers may serve. The primary process alone assigns slots of limited engines, of the built-in
 * engine and of nodes, and applies policies.
 */
export function directModels({ catalog, sources, router }: DirectModelsDeps): DirectModels {
  const engines = sources.direct();
  const byEngine = new Map(engines.map(({ engine, connection }) => [engine, connection]));
  const models = catalog.list();
  const isDirect = ({ deployments, policies }: Model) =>
    policies === undefined && deployments.length > 0 && deployments.every(({ engine }) => byEngine.has(engine));
  const direct = models.filter(
    (model) =>
      isDirect(model) &&
      (model.fallbacks ?? []).every((id) => {
        const fallback = catalog.get(id);
        return fallback === undefined || isDirect(fallback);
      }),
  );
  const ids = new Set(direct.map(({ id }) => id));
  return {
    engines: engines.map(({ connection }) => connection),
    models: direct.map(({ created: _, deployments, ...model }) => ({
      ...model,
      deployments: deployments.map(({ engine, model: id, weight }) => ({ engine: engine.name, model: id, weight })),
    })),
    others: models.flatMap(({ id }) => (ids.has(id) ? [] : [id])),
    drained: [...router.drained],
  };
}
