// Chooses the order in which a model's deployments are tried.
import type { Clock } from "../domain/clock.ts";
import type { Engine } from "../domain/engine.ts";
import type { Deployment, Model } from "../domain/model.ts";

interface EngineLoad {
  outstanding: number;
  failures: number;
  /** Monotonic milliseconds; until then the engine is tried last. */
  restUntilMs: number;
}

const firstRestMs = 2_000;
const longestRestMs = 60_000;

/** Passive health and least outstanding work by weight. An engine that just failed is tried last, never forgotten. */
export class Router {
  /** Names of engines that finish what they have and get nothing new. */
  drained: ReadonlySet<string> = new Set();
  readonly #clock: Clock;
  readonly #loads = new WeakMap<Engine, EngineLoad>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether it failed a moment ago. */
  resting(engine: Engine): boolean {
    const restUntilMs = this.#loads.get(engine)?.restUntilMs ?? 0;
    return restUntilMs > 0 && restUntilMs > this.#clock.monotonicMs();
  }

  /** Without what is drained, so it may be empty. */
  order(model: Model): readonly Deployment[] {
    const deployments = this.#open(model);
    if (deployments.length < 2) return deployments;
    const now = this.#clock.monotonicMs();
    const ranked = deployments.map((deployment) => {
      const load = this.#load(deployment.engine);
      return {
        deployment,
        resting: load.restUntilMs > now ? 1 : 0,
        busy: load.outstanding / deployment.weight,
        // Among equally busy ones the weight decides by lot (Efraimidis and Spirakis, weighted random sampling).
        lot: -Math.log(1 - Math.random()) / deployment.weight,
      };
    });
    ranked.sort((a, b) => a.resting - b.resting || a.busy - b.busy || a.lot - b.lot);
    return ranked.map((entry) => entry.deployment);
  }

  /** Counts a request as outstanding; call the returned function once, at its end. */
  begin(engine: Engine): () => void {
    const load = this.#load(engine);
    load.outstanding++;
    let ended = false;
    return () => {
      if (!ended) load.outstanding--;
      ended = true;
    };
  }

  succeeded(engine: Engine): void {
    const load = this.#load(engine);
    load.failures = 0;
    load.restUntilMs = 0;
  }

  failed(engine: Engine): void {
    const load = this.#load(engine);
    const rest = Math.min(firstRestMs * 2 ** load.failures, longestRestMs);
    load.failures++;
    load.restUntilMs = this.#clock.monotonicMs() + rest;
  }

  #open({ deployments }: Model): readonly Deployment[] {
    if (this.drained.size === 0) return deployments;
    return deployments.filter(({ engine }) => !this.drained.has(engine.name));
  }

  #load(engine: Engine): EngineLoad {
    let load = this.#loads.get(engine);
    if (!load) {
      load = { outstanding: 0, failures: 0, restUntilMs: 0 };
      this.#loads.set(engine, load);
    }
    return load;
  }
}
