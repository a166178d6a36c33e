// Builds the operators' view of all upstreams from all sources.
import type { Clock } from "../../base/clock.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { StoredUpstream, UpstreamSettings, UpstreamSource } from "../../domain/models/upstream.ts";
import { apisOf, type UpstreamSpeech } from "../../domain/models/upstream-speech.ts";
import { upstreamAttemptsToWire } from "../../wire/attempts.ts";
import type { UpstreamWire } from "../../wire/upstreams.ts";
import type { Capacity } from "../routing/capacity.ts";
import type { Router } from "../routing/route.ts";
import type { Catalog } from "./catalog.ts";
import type { UpstreamHealths } from "./upstream-health.ts";

/** An upstream from the database, with its API key decrypted. */
export interface OpenedUpstream extends UpstreamSettings {
  /** The decrypted API key, which must stay secret. */
  apiKey: string | undefined;
}

/** An existing upstream from any source, without secrets. */
export interface KnownUpstream
  extends Pick<
    UpstreamSettings,
    "name" | "discover" | "local" | "environments" | "maxConcurrency" | keyof UpstreamSpeech
  > {
  /** URL and times are null for the built-in engine and for nodes. */
  url: string | null;
  timeoutSeconds: number | null;
  idleSeconds: number | null;
  source: UpstreamSource;
  hasApiKey: boolean;
  engine: Engine;
}

export interface UpstreamSources {
  /** Upstreams from the database. A change takes effect once the catalog is configured again. */
  stored: readonly OpenedUpstream[];
  known(): readonly KnownUpstream[];
  /** Returns earlier engine objects of this upstream. Requests that began before a change may still run there. */
  former(name: string): readonly Engine[];
}

export interface UpstreamViewDeps {
  sources: Pick<UpstreamSources, "former">;
  catalog: Pick<Catalog, "status">;
  capacity: Pick<Capacity, "figures">;
  router: Pick<Router, "engineState" | "loadOf">;
  healths: Pick<UpstreamHealths, "of">;
  clock: Pick<Clock, "nowSeconds">;
}

export interface UpstreamStatus {
  /** The upstream's row in the database. Undefined if it has none. */
  stored: StoredUpstream | undefined;
  /** True if the upstream's API key cannot be decrypted. */
  isUnreadable: boolean;
  isDraining: boolean;
}

const unreadableText = "Its API key was sealed with another secret, or for another server: set api_key again.";

export function upstreamToWire(
  upstream: KnownUpstream,
  { sources, catalog, capacity, router, healths, clock }: UpstreamViewDeps,
  { stored, isUnreadable, isDraining }: UpstreamStatus,
): UpstreamWire {
  const { name, source, engine } = upstream;
  const own = source === "database" ? stored : undefined;
  const now = capacity.figures(engine);
  const all = [...sources.former(name).flatMap((former) => capacity.figures(former)), ...now];
  const { models, error } = catalog.status(engine);
  const load = router.loadOf(engine);
  const asked = error !== undefined ? "unreachable" : models === undefined ? "starting" : "ok";
  return {
    object: "upstream",
    name,
    url: upstream.url,
    source,
    overrides_database: stored !== undefined && own === undefined,
    has_api_key: own ? own.sealedApiKey !== null : upstream.hasApiKey,
    discover: upstream.discover,
    local: upstream.local,
    environments: [...upstream.environments],
    timeout_seconds: upstream.timeoutSeconds,
    idle_seconds: upstream.idleSeconds,
    max_concurrency: upstream.maxConcurrency,
    ...{ api: upstream.api, apis: apisOf(engine.formats), names_apis: upstream.apis !== null },
    ...{ key_header: upstream.keyHeader, query: { ...upstream.query } },
    ...{ cache_salt: upstream.cacheSalt, priority: upstream.priority, identifiers: upstream.identifiers },
    state: isDraining ? "draining" : asked,
    health: router.engineState(engine),
    models: models ?? 0,
    ...workOf(all, now, upstream.maxConcurrency),
    load: load
      ? { running: load.running, waiting: load.waiting, cache_use: load.cacheUse, cache_hits: load.cacheHits }
      : null,
    error: own && isUnreadable ? unreadableText : (error ?? null),
    attempts: upstreamAttemptsToWire(healths.of(engine), clock.nowSeconds()),
    created_at: own?.createdAt ?? null,
  };
}

type Figures = ReturnType<Capacity["figures"]>;

/**
 * Returns the running and waiting requests of `all`, and the number of slots of `now`. If no slots are known yet,
 * returns `declared` instead.
 */
export function workOf(all: Figures, now: Figures, declared: number | null) {
  return {
    running: sum(all.map(({ inFlight }) => inFlight)),
    waiting: sum(all.map(({ waiting }) => waiting)),
    concurrency: now.length === 0 ? declared : sum(now.map(({ limit }) => limit)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
