// Metrics of a worker, which the primary process adds to its own.
import type { Clock } from "../../base/clock.ts";
import type { Observer } from "../../domain/usage/observer.ts";
import type { Http1Server } from "../../http1/server/server.ts";
import type { SpoolLedger } from "../../ledger/ledger.ts";
import { Exposition } from "../../metrics/exposition.ts";
import { writeUse } from "../../metrics/process-figures.ts";
import { Traffic } from "../../metrics/traffic.ts";
import { writeBufferedBytes, writeHttp, writeLedger, writeSlots } from "../server-metrics.ts";
import type { WorkerRouting } from "./worker-routing.ts";

export interface WorkerMetricsOptions {
  clock: Clock;
  routing: WorkerRouting;
  /** Returns the worker's HTTP server; undefined before the worker listens. */
  http(): Pick<Http1Server, "pendingRequests" | "connections"> | undefined;
}

export class WorkerMetrics {
  readonly #options: WorkerMetricsOptions;
  readonly #traffic: Traffic;

  constructor(options: WorkerMetricsOptions) {
    this.#options = options;
    const { clock, routing } = options;
    this.#traffic = new Traffic({
      hasModel: (id) => routing.catalog.get(id) !== undefined,
      hasUpstream: (name) => routing.engines.some((engine) => engine.name === name),
      nowMs: () => clock.monotonicMs(),
    });
  }

  get observer(): Observer {
    return this.#traffic;
  }

  /** Returns the metrics of this worker that can be summed over all workers. */
  text(ledger: Pick<SpoolLedger, "figures"> | undefined): string {
    const { routing, http } = this.#options;
    const out = new Exposition("prometheus");
    this.#traffic.write(out, routing.capacity.waitingByModel);
    const server = http();
    if (server) writeHttp(out, server);
    writeBufferedBytes(out);
    writeSlots(
      out,
      routing.engines.map((engine) => ({ name: engine.name, engine })),
      routing.capacity,
    );
    if (ledger) writeLedger(out, ledger);
    writeUse(out);
    return out.end();
  }
}
