// The models that a worker serves by itself: those without policies whose every deployment is a server that is asked over HTTP
// without a bound.
import type { Model } from "../domain/models/model.ts";
import type { Catalog, DeclaredModel } from "../inference/models/catalog.ts";
import type { Router } from "../inference/routing/route.ts";
import type { DirectEngine, EngineSources } from "./engine-sources.ts";

/** Plain data: workers are sent it. */
export interface DirectModels {
  readonly engines: readonly DirectEngine[];
  readonly models: readonly DeclaredModel[];
  /** Ids of all others: no alias of one that is served here stands for them. */
  readonly others: readonly string[];
  /** Names of engines that get nothing new. */
  readonly drained: readonly string[];
}

export interface DirectModelsDeps {
  catalog: Pick<Catalog, "list" | "get">;
  sources: Pick<EngineSources, "direct">;
  router: Pick<Router, "drained">;
}

/**
 * Places at engines with a bound, at the built-in one and at nodes are given by the primary process alone; and what policies
 * count and keep is there.
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
        const standIn = catalog.get(id);
        return standIn === undefined || isDirect(standIn);
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
