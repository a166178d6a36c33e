// Lists the deployments of each model, and their current state.
import type { Clock } from "../../base/clock.ts";
import { builtInEngineName, type Engine } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { ModelProcessState } from "../../domain/models/model-process-state.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { DeploymentState } from "../../domain/models/upstream.ts";
import type { Speed, Speeds } from "../../domain/usage/speed.ts";
import { attemptsToWire } from "../../wire/attempts.ts";
import type { Capacity, QueueForecast } from "../routing/capacity.ts";
import type { Router } from "../routing/route.ts";
import type { Catalog } from "./catalog.ts";
import type { UpstreamHealths } from "./upstream-health.ts";

/**
 * The sources of a deployment. `configured` is an upstream of the configuration file, or one that an operator added.
 * `node` is a machine that joined.
 */
export const deploymentKinds = ["built-in", "configured", "found", "node"] as const;

export interface DeploymentStatus {
  upstream: string;
  kind: (typeof deploymentKinds)[number];
  /** The model's id at the engine. */
  model: string;
  state: DeploymentState;
  /** State of the process that serves the model, if the gateway starts that process on demand. */
  process: ModelProcessState | null;
  /** Running requests of this model. If one limit covers all models of the engine, running requests of the engine. */
  running: number;
  waiting: number;
  /** For each priority: the waiting requests, and the expected wait of a new request. */
  lines: Record<Priority, QueueForecast>;
  /** Number of requests that the engine accepts at once. Null if it is unknown before the first request. */
  concurrency: number | null;
  speed: Omit<Speed, "model" | "upstream"> | undefined;
  /** The recorded attempts at the deployment. Only operators see them. */
  attempts: ReturnType<typeof attemptsToWire>;
}

export interface ModelStatusOptions {
  catalog: Catalog;
  router: Pick<Router, "resting" | "drained">;
  capacity: Pick<Capacity, "figures" | "lines">;
  healths: Pick<UpstreamHealths, "ofModel">;
  speeds: Speeds;
  clock: Clock;
}

/** Milliseconds for which measured speeds are cached. */
const speedsKeptMs = 5_000;

export class ModelStatus {
  readonly #options: ModelStatusOptions;
  #speeds: Promise<readonly Speed[]> = Promise.resolve([]);
  #speedsReadMs = Number.NEGATIVE_INFINITY;

  constructor(options: ModelStatusOptions) {
    this.#options = options;
  }

  /**
   * Lists models in the order of the catalog. `usable` returns the model as the caller may see it, or undefined to hide
   * it.
   */
  async list(
    usable: (model: Model) => Model | undefined,
  ): Promise<{ model: Model; deployments: DeploymentStatus[] }[]> {
    const { catalog } = this.#options;
    await catalog.whenComplete();
    const speeds = Map.groupBy(await this.#recentSpeeds(), ({ model }) => model);
    return catalog
      .list()
      .flatMap((model) => usable(model) ?? [])
      .map((model) => ({
        model,
        deployments: model.deployments.map((deployment) => this.#statusOf(deployment, speeds.get(model.id))),
      }));
  }

  #statusOf(deployment: Deployment, speeds: readonly Speed[] | undefined): DeploymentStatus {
    const { engine, model } = deployment;
    return {
      upstream: engine.name,
      kind: this.#kindOf(engine),
      model,
      state: this.stateOf(deployment),
      process: engine.processState?.(model) ?? null,
      ...this.#loadOf(deployment),
      speed: speeds?.find((speed) => speed.upstream === engine.name),
      attempts: this.attemptsOf(deployment),
    };
  }

  #kindOf(engine: Engine): DeploymentStatus["kind"] {
    if (engine.name === builtInEngineName) return "built-in";
    if (this.#options.catalog.isNode(engine)) return "node";
    return this.#options.catalog.isConfigured(engine) ? "configured" : "found";
  }

  stateOf(deployment: Deployment): DeploymentState {
    const { router, catalog } = this.#options;
    const { engine } = deployment;
    if (router.drained.has(engine.name)) return "draining";
    if (catalog.status(engine).error !== undefined) return "unreachable";
    if (this.#options.healths.ofModel(engine, deployment.model).isFailing) return "failing";
    return router.resting(deployment) ? "cooling_down" : "ok";
  }

  /** Returns the recorded attempts at a deployment, for operators only. */
  attemptsOf({ engine, model }: Deployment): ReturnType<typeof attemptsToWire> {
    const { healths, clock } = this.#options;
    return attemptsToWire(healths.ofModel(engine, model), clock.nowSeconds());
  }

  #loadOf({ engine, model }: Deployment): Pick<DeploymentStatus, "running" | "waiting" | "lines" | "concurrency"> {
    const gates = this.#options.capacity.figures(engine).filter((gate) => gate.model === null || gate.model === model);
    const sum = (figure: "inFlight" | "waiting" | "limit") => gates.reduce((total, gate) => total + gate[figure], 0);
    const declared = engine.concurrency?.(model, "chat") ?? engine.maxConcurrency ?? null;
    return {
      running: sum("inFlight"),
      waiting: sum("waiting"),
      lines: this.#options.capacity.lines(engine, model),
      concurrency: gates.length === 0 ? declared : sum("limit"),
    };
  }

  /** Returns the measured speeds. If reading them fails, returns the last known ones. */
  #recentSpeeds(): Promise<readonly Speed[]> {
    const { clock, speeds } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#speedsReadMs >= speedsKeptMs) {
      this.#speedsReadMs = nowMs;
      const before = this.#speeds;
      this.#speeds = speeds.recent(clock.nowSeconds()).catch(() => before);
    }
    return this.#speeds;
  }
}
