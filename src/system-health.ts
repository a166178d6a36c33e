// Gathers how the server does, for its operators: cheap figures of this moment.
import { stat } from "node:fs/promises";
import type { Config } from "./config.ts";
import { EventLoopDelay } from "./event-loop-delay.ts";
import type { Governance } from "./governance.ts";
import type { SystemFigures } from "./http/admin-system-routes.ts";
import type { ServiceRouteDeps } from "./http/service-routes.ts";
import type { Capacity } from "./inference/capacity.ts";

export interface SystemHealthOptions {
  version: string;
  config: Pick<Config, "mode">;
  /** Unix seconds. */
  startedAt: number;
  databaseFile: string;
  governance: Pick<Governance, "ledger" | "authenticator">;
  capacity: Pick<Capacity, "waiting">;
  readiness: ServiceRouteDeps["readiness"];
}

export class SystemHealth {
  readonly #options: SystemHealthOptions;
  readonly #delay = new EventLoopDelay();

  constructor(options: SystemHealthOptions) {
    this.#options = options;
  }

  async figures(): Promise<SystemFigures> {
    const { version, config, startedAt, databaseFile, governance, capacity, readiness } = this.#options;
    const [{ checks }, size, walSize] = await Promise.all([
      readiness(),
      sizeOf(databaseFile),
      sizeOf(`${databaseFile}-wal`),
    ]);
    const delay = this.#delay.figures();
    const { open, spoolBytes, pending } = governance.ledger.figures;
    const { cached, unconfirmedMs } = governance.authenticator.figures;
    return {
      object: "system",
      version,
      mode: config.mode,
      started_at: startedAt,
      memory: { rss_bytes: process.memoryUsage.rss() },
      event_loop: { mean_delay_ms: rounded(delay.meanMs), max_delay_ms: rounded(delay.maxMs) },
      database: { kind: "sqlite", size_bytes: size, wal_bytes: walSize, state: checks["database"] ?? "failed" },
      spool: { bytes: spoolBytes, pending },
      requests: { open, waiting: capacity.waiting },
      credentials: { cached, unconfirmed_ms: Math.round(unconfirmedMs) },
      checks,
    };
  }

  close(): void {
    this.#delay.close();
  }
}

/** 0 where there is no such file: a write-ahead log comes and goes. */
async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
