// Tests suspended engines when the suspension ends, by requesting their list of models. So no client's request has to
// be the test.
import type { Engine } from "../../domain/models/engine.ts";
import type { Catalog } from "../models/catalog.ts";
import type { Router } from "./route.ts";

export interface RestProbesOptions {
  router: Pick<Router, "onRest" | "claimEngine" | "releaseEngine">;
  /** Asks one engine for its models. The router learns the result. */
  catalog: Pick<Catalog, "refreshSource">;
}

export class RestProbes {
  readonly #options: RestProbesOptions;
  readonly #timers = new Map<Engine, ReturnType<typeof setTimeout>>();

  constructor(options: RestProbesOptions) {
    this.#options = options;
    options.router.onRest = (engine, restMs) => this.#later(engine, restMs);
  }

  close(): void {
    this.#options.router.onRest = undefined;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #later(engine: Engine, restMs: number): void {
    clearTimeout(this.#timers.get(engine));
    const timer = setTimeout(() => {
      this.#timers.delete(engine);
      void this.#probe(engine);
    }, Math.ceil(restMs));
    timer.unref();
    this.#timers.set(engine, timer);
  }

  async #probe(engine: Engine): Promise<void> {
    const { router, catalog } = this.#options;
    // If the engine has recovered, or if a request is already testing it, no test is needed.
    if (!router.claimEngine(engine)) return;
    await catalog.refreshSource(engine);
    // If the engine did not list its models, the test has no result, so a request must be the test.
    router.releaseEngine(engine);
  }
}
