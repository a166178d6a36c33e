// Asks suspended engines for their models when the suspension ends, so that no client request has to test them.
import type { Engine } from "../../domain/models/engine.ts";
import type { Catalog } from "../models/catalog.ts";
import type { Router } from "./route.ts";

export interface RestProbesOptions {
  router: Pick<Router, "onRest" | "claimEngine" | "releaseEngine">;
  /** Asks one engine for its models. The result reaches the router. */
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
    // The engine has recovered, or a request is already testing it.
    if (!router.claimEngine(engine)) return;
    await catalog.refreshSource(engine);
    // If the engine did not list its models, that proves nothing; a request must test it.
    router.releaseEngine(engine);
  }
}
