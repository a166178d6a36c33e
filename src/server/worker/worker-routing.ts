// A worker's routing: engines and models from the primary process, health and load as observed here.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { ReloadableConfig } from "../../config/config.ts";
import { speechOf } from "../../domain/models/upstream-speech.ts";
import type { AttemptDelta } from "../../domain/usage/attempt-health.ts";
import type { UpstreamEngine } from "../../engines/upstream-engine.ts";
import { Catalog } from "../../inference/models/catalog.ts";
import { Capacity } from "../../inference/routing/capacity.ts";
import { LoadReader } from "../../inference/routing/load-reader.ts";
import { RestProbes } from "../../inference/routing/rest-probes.ts";
import { Router } from "../../inference/routing/route.ts";
import type { DirectModels } from "../direct-models.ts";
import { createUpstream, identityOf } from "../engine-sources.ts";

export interface WorkerRoutingOptions {
  clock: Clock;
  log: Log;
  /** Number of processes that send to the same engines. */
  workers: number;
  limits(): Pick<ReloadableConfig["limits"], "queue" | "queueSeconds">;
}

/**
 * The primary process polls at the same interval. Workers poll too, because only the process that reads a model list
 * learns formats and reachability from it.
 */
const pollMs = 30_000;

export class WorkerRouting {
  readonly catalog: Catalog;
  readonly router: Router;
  readonly capacity: Capacity;
  #engines = new Map<string, UpstreamEngine>();
  #others: ReadonlySet<string> = new Set();

  constructor({ clock, log, workers, limits }: WorkerRoutingOptions) {
    // The primary process already logs unreachable servers.
    this.catalog = new Catalog({ log: { ...silent, error: (event, fields) => log.error(event, fields) }, clock });
    this.router = new Router(clock);
    this.router.gateways = () => workers;
    this.catalog.watcher = this.router;
    new RestProbes({ router: this.router, catalog: this.catalog });
    new LoadReader({ engines: () => this.engines, router: this.router, clock });
    this.capacity = new Capacity({
      ...{ clock, router: this.router },
      bounds() {
        const { queue, queueSeconds } = limits();
        return { maxWaiting: queue, maxWaitMs: queueSeconds * 1000 };
      },
    });
    setInterval(() => void this.catalog.refresh(), pollMs).unref();
  }

  get engines(): UpstreamEngine[] {
    return [...this.#engines.values()];
  }

  configure({ engines, models, others, drained }: DirectModels): void {
    const before = this.#engines;
    this.#engines = new Map(
      engines.map((connection) => {
        const identity = identityOf(connection);
        return [identity, before.get(identity) ?? createUpstream({ ...connection, ...speechOf(connection) })];
      }),
    );
    const sources = engines.map((connection) => ({
      engine: this.#engines.get(identityOf(connection)) as UpstreamEngine,
      ...{ discover: false, environments: [], configured: false, local: connection.local },
    }));
    this.router.drained = new Set(drained);
    this.#others = new Set(others);
    this.catalog.configure(sources, models);
    this.capacity.regroup();
    const isNew = [...this.#engines.keys()].some((identity) => !before.has(identity));
    if (isNew || !this.catalog.complete) void this.catalog.refresh();
  }

  /** Reports whether the model that a client names is served here. */
  serves(name: string): boolean {
    return !this.#others.has(name) && this.catalog.find(name) !== undefined;
  }

  /** Returns the attempts since the last call, by upstream and model. */
  takeAttempts(): [upstream: string, model: string, attempts: AttemptDelta][] {
    return this.engines.flatMap((engine) =>
      [...this.router.attemptsAt(engine).models].flatMap(([model, { attempts }]) => {
        const taken = attempts.take();
        return taken ? [[engine.name, model, taken] as [string, string, AttemptDelta]] : [];
      }),
    );
  }

  /** Removes the credentials of all engines from the text. */
  redact(text: string): string {
    return this.engines.reduce((safe, engine) => engine.redact(safe), text);
  }
}

const silent = { info: () => {}, warn: () => {} };
