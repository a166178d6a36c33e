// Gathers current figures for operators, cheaply.
import type { Config, SecretState } from "../config/config.ts";
import type { SystemFigures } from "../http/api/admin/system-routes.ts";
import type { ServiceRouteDeps } from "../http/api/service-routes.ts";
import type { Upstreams } from "../inference/models/manage-upstreams.ts";
import type { Capacity } from "../inference/routing/capacity.ts";
import { sampleIn, summed } from "../metrics/summed.ts";
import { withDeadline } from "../policy/deadline.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import { type Database, dialectOf } from "../storage/sql/database.ts";
import { databaseSize } from "../storage/sql/database-size.ts";
import { EventLoopDelay } from "./event-loop-delay.ts";
import type { Exports } from "./exports/open-exports.ts";
import type { Governance } from "./governance.ts";

/** The time limit for reading sizes: the figures are needed during faults, so they do not wait for parts that hang. */
const sizeMs = 800;

export interface SystemHealthOptions {
  version: string;
  config: Pick<Config, "mode" | "file">;
  /** Unix seconds. */
  startedAt: number;
  db: Database;
  replicas: Pick<Replicas, "id" | "live">;
  upstreams: Pick<Upstreams, "isReplicaDrained">;
  governance: Pick<Governance, "ledger" | "authenticator" | "secretRotation">;
  capacity: Pick<Capacity, "waiting">;
  readiness: ServiceRouteDeps["readiness"];
  /** Returns the workers' metrics as texts. Undefined without workers. */
  ofWorkers?: (() => Promise<readonly string[]>) | undefined;
  /** Returns the states of the secrets that the configuration refers to. */
  secrets(): readonly SecretState[];
  exports: Exports;
  /** Called with the event-loop delay ten times a second. */
  onDelay: (delayMs: number) => void;
}

export class SystemHealth {
  /** The last reload of the configuration file. */
  lastReload: SystemFigures["configuration"]["last_reload"] = null;
  readonly #options: SystemHealthOptions;
  readonly #delay: EventLoopDelay;

  constructor(options: SystemHealthOptions) {
    this.#options = options;
    this.#delay = new EventLoopDelay(undefined, options.onDelay);
  }

  async figures(): Promise<SystemFigures> {
    const { version, config, startedAt, db, replicas, upstreams, governance, capacity, readiness, ofWorkers } =
      this.#options;
    // Read before the checks, which may drop cached credentials.
    const { cached, unconfirmedMs } = governance.authenticator.figures;
    const [{ checks }, size, secret, texts = []] = await Promise.all([
      readiness(),
      withDeadline(databaseSize(db), sizeMs).catch(() => ({ bytes: null, walBytes: null })),
      withDeadline(governance.secretRotation.figures(), sizeMs).catch(() => undefined),
      ofWorkers && withDeadline(ofWorkers(), sizeMs).catch(() => []),
    ]);
    const workers = summed("", texts);
    const delay = this.#delay.figures();
    const { open, spoolBytes, pending } = governance.ledger.figures;
    return {
      object: "system",
      version,
      mode: config.mode,
      started_at: startedAt,
      configuration: { file: config.file.found ? config.file.path : null, last_reload: this.lastReload },
      external_secrets: this.#options.secrets().map(({ name, ageSeconds, failure = null }) => ({
        ...{ name, age_seconds: ageSeconds, failure },
      })),
      exports: exportsToWire(this.#options.exports),
      memory: { rss_bytes: process.memoryUsage.rss() },
      event_loop: { mean_delay_ms: rounded(delay.meanMs), max_delay_ms: rounded(delay.maxMs) },
      database: {
        kind: dialectOf(db),
        size_bytes: size.bytes,
        wal_bytes: size.walBytes,
        state: checks["database"] ?? "failed",
      },
      redis: checks["redis"] === undefined ? null : { state: checks["redis"] },
      replicas: replicas.live().map((replica) => ({
        object: "replica" as const,
        id: replica.id,
        advertise_url: replica.advertiseUrl,
        version: replica.version,
        started_at: replica.startedAt,
        seen_at: replica.seenAt,
        current: replica.id === replicas.id,
        draining: upstreams.isReplicaDrained(replica.id),
      })),
      spool: {
        bytes: spoolBytes + sampleIn(workers, "headrace_ledger_spool_bytes"),
        pending: pending + sampleIn(workers, "headrace_ledger_pending_records"),
      },
      requests: { open: open + sampleIn(workers, "headrace_ledger_open_requests"), waiting: capacity.waiting },
      credentials: { cached, unconfirmed_ms: Math.round(unconfirmedMs) },
      secret: secret
        ? {
            accepted: secret.accepted,
            keys_under_old: secret.keysUnderOlder,
            keys_under_dropped: secret.keysUnderDropped,
            app_secrets_under_old: secret.appSecretsUnderOlder,
            app_secrets_under_dropped: secret.appSecretsUnderDropped,
            sealed_under_old: secret.sealedUnderOlder,
            join_tokens_under_old: secret.joinTokens,
          }
        : null,
      checks,
    };
  }

  close(): void {
    this.#delay.close();
  }
}

function exportsToWire({ sinks, metrics }: Exports): SystemFigures["exports"] {
  const ofMetrics = metrics();
  return [
    ...sinks().map(({ name, state }) => ({
      ...{ receiver: name, records: true, waiting: state?.waiting ?? 0, lag_seconds: state?.lagSeconds ?? 0 },
      ...{ last_sent_at: state?.sentAt ?? null, failing_since: state?.failingSince ?? null },
      failure: state?.error ?? null,
    })),
    ...(ofMetrics
      ? [
          {
            ...{ receiver: "otlp", records: false, waiting: 0, lag_seconds: 0, last_sent_at: ofMetrics.sentAt },
            ...{ failing_since: ofMetrics.failingSince, failure: ofMetrics.error },
          },
        ]
      : []),
  ];
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
