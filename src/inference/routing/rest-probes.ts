// Asks engines at rest whether they are back, so that no request of a client has to find out.
import type { Engine } from "../../domain/models/engine.ts";
import type { Catalog } from "../models/catalog.ts";
import type { Router } from "./route.ts";

export interface RestProbesOptions {
  router: Pick<Router, "onRest" | "claimEngine" | "releaseEngine">;
  /** Looks at one engine, and tells the router what came of it. */
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
    // A request was quicker, or it is well again.
    if (!router.claimEngine(engine)) return;
    await catalog.refreshSource(engine);
    // One that lists no models, or is slow to, proves nothing either way: a request has to try it.
    router.releaseEngine(engine);
  }
}
