// Asks suspended engines whether they are back, so that no client request has to test them.
import type { Engine } from "../../domain/models/engine.ts";
import type { Catalog } from "../models/catalog.ts";
import type { Router } from "./route.ts";

export interface RestProbesOptions {
  router: Pick<Router, "onRest" | "claimEngine" | "releaseEngine">;
  /** Asks one engine, and reports the result to the router. */
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
    // A request was faster, or the engine is healthy again.
    if (!router.claimEngine(engine)) return;
    await catalog.refreshSource(engine);
    // An engine that lists no models, or lists them slowly, proves nothing, so a request has to test it.
    router.releaseEngine(engine);
  }
}
